// Package host is the interface of a node's programs to the machine on which they run: files, units, a name, addresses,
// a clock. Simulated machines provide it; tests use one in memory (hosttest).
//
// It may import nothing of the project.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// Files is the file system of a machine. Paths are absolute.
type Files interface {
	// ReadFile fails with fs.ErrNotExist if there is no such file.
	ReadFile(path string) ([]byte, error)
	// WriteFile replaces a file atomically. It creates missing folders, and keeps the owner of an existing file.
	WriteFile(path string, data []byte, mode fs.FileMode) error
	// Remove removes a file. A missing file is no error.
	Remove(path string) error
	// Sync returns when everything that was written survives a loss of power.
	Sync() error
}

// Units are the services of a machine, as in systemd.
type Units interface {
	DaemonReload(ctx context.Context) error
	Enable(ctx context.Context, name string) error
	Disable(ctx context.Context, name string) error
	Start(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	Restart(ctx context.Context, name string) error
	IsActive(name string) bool
}

// Metadata is what the cloud tells a machine about itself. Unknown fields are empty.
type Metadata struct {
	ProviderID, Zone, Region, InstanceType string
	// Cluster is the name of the cluster's network, which no other cluster of the landscape has.
	Cluster string
	// Capacity has the resources of the instance type.
	Capacity corev1.ResourceList
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
	// APIServer returns the URL at which the API server listens, "" if it does not run. It may be nil.
	APIServer func() string
	// OnlyAPIServer says that only the API server reaches the listeners: the kubelet need not authenticate clients.
	OnlyAPIServer bool
	Clock         clock.WithTicker
	// Log is the log of the landscape, Journal that of the machine.
	Log     logr.Logger
	Journal io.Writer
}

// Server returns the URL at which an API server is reached. The machines of a landscape do not resolve the names of API servers, and
// the port of one changes when another program takes it while the landscape is stopped.
func (h Host) Server(configured string) (string, error) {
	if h.APIServer == nil {
		return configured, nil
	}
	if server := h.APIServer(); server != "" {
		return server, nil
	}
	return "", errors.New("the API server does not run")
}

// Logf writes a line to the journal, and to the log with verbosity 1.
func (h Host) Logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if h.Journal != nil {
		_, _ = io.WriteString(h.Journal, line+"\n")
	}
	h.Log.V(1).Info(line, "machine", h.Hostname)
}

// Sleep waits on a clock for a duration. If the context ends before, it returns the cause.
func Sleep(ctx context.Context, clk clock.WithTicker, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}

// Backoff is an exponential backoff from First to Max, with a jitter of half of the delay, so that nodes that fail
// together do not retry together.
type Backoff struct {
	First, Max time.Duration
	next       time.Duration
}

// Next returns the next delay.
func (b *Backoff) Next() time.Duration {
	d := min(max(b.next, b.First), b.Max)
	b.next = 2 * d
	return d/2 + rand.N(d/2+1)
}

// Reset starts over with First. Call it after a success.
func (b *Backoff) Reset() { b.next = 0 }
