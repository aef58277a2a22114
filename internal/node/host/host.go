package host

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Files is the file system of a machine. Paths are absolute.
type Files interface {
	// ReadFile fails with fs.ErrNotExist if there is no such file.
	ReadFile(path string) ([]byte, error)
	// WriteFile replaces a file in one step. It makes the folders that are missing, and keeps the owner of a file.
	WriteFile(path string, data []byte, mode fs.FileMode) error
	// Remove removes a file; there may be none.
	Remove(path string) error
	// Sync returns when all that was written is still there after the power has gone.
	Sync() error
}

// Units are the services of a machine, in the way of systemd.
type Units interface {
	DaemonReload(ctx context.Context) error
	Enable(ctx context.Context, name string) error
	Disable(ctx context.Context, name string) error
	Start(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	Restart(ctx context.Context, name string) error
	IsActive(name string) bool
}

// Metadata is what the cloud tells a machine of itself. What it does not know is empty.
type Metadata struct {
	ProviderID, Zone, Region, InstanceType string
}

// Host is a machine, as its programs see it.
type Host struct {
	Hostname  string
	Addresses []netip.Addr
	Files     Files
	Units     Units
	Metadata  Metadata
	// Listen listens on a port of the machine's address.
	Listen func(port uint16) (net.Listener, error)
	// OnlyAPIServer says that nothing but the cluster's API server reaches what listens: the kubelet need not authenticate it.
	OnlyAPIServer bool
	Clock         clock.WithTicker
	// Log is for who runs the landscape, Journal for who looks at the machine.
	Log     logr.Logger
	Journal io.Writer
}

// Say writes a line to the journal, and to the log where it is verbose.
func (h Host) Say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if h.Journal != nil {
		_, _ = io.WriteString(h.Journal, line+"\n")
	}
	h.Log.V(1).Info(line, "machine", h.Hostname)
}
