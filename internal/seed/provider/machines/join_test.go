package machines

import (
	"testing"

	"github.com/gardenlite/gardenlite/internal/node"
)

func TestReplace(t *testing.T) {
	got := replace([]byte(`plain <<MACHINE_NAME>>, in a URL data:,%3C%3CMACHINE_NAME%3E%3E%0A, <<MACHINE_NAMES>>`),
		node.PlaceholderMachineName, "m-1")
	if want := `plain m-1, in a URL data:,m-1%0A, <<MACHINE_NAMES>>`; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
