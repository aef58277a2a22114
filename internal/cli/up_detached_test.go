package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/landscape"
)

// longError makes the test program behave as a landscape in the background that does not start.
const longError = "GARDENLITE_TEST_LONG_ERROR"

func init() {
	if os.Getenv(longError) != "" {
		newProgress(&globals{}, 3).fail(errors.New(strings.Repeat("x", 200<<10)))
		os.Exit(exitFailed)
	}
}

// TestLongErrorOfBackground checks that an error of any length of a start in the background is returned.
func TestLongErrorOfBackground(t *testing.T) {
	t.Setenv(longError, "1")
	u := &upFlags{config: landscape.Config{Name: "x", Dir: t.TempDir(), Port: 1}}
	err := u.runDetached(t.Context(), &globals{streams: streams{out: &bytes.Buffer{}, err: &bytes.Buffer{}}})
	if err == nil || len(err.Error()) != 200<<10 {
		t.Errorf("the error is %.200v", err)
	}
}
