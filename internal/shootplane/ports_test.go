package shootplane

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// TestPorts checks that a shoot keeps its port, and that no other shoot gets it, whether or not it runs.
func TestPorts(t *testing.T) {
	p := &ports{dir: t.TempDir(), keeper: fsutil.Nowhere{}, reserved: map[int]string{}}
	first, err := p.take("one")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(p.dir, "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.keep("one", first); err != nil {
		t.Fatal(err)
	}
	p.release("one")
	if again := (&ports{dir: p.dir, reserved: map[int]string{}}).recorded("one"); again != first {
		t.Errorf("the port was %d and is %d", first, again)
	}
	// Another shoot, with a search that may begin at the same port.
	other := &ports{dir: p.dir, reserved: map[int]string{first + 1: "starts"}}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(first+2)))
	if err == nil {
		defer listener.Close() //nolint:errcheck // a test's
	}
	for i := range 3 {
		if port := first + i; !other.others()[port] && other.reserved[port] == "" && canListen(port) {
			t.Errorf("port %d would be given away", port)
		}
	}
	if port, err := other.take("two"); err != nil || port == first || port < firstPort || port >= firstPort+manyPorts {
		t.Errorf("the other's port is %d, %v", port, err)
	}
}
