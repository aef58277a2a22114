// Package hosttest provides a machine in memory for the tests of its programs. It may import package host only.
package hosttest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/node/host"
)

// Machine is a machine in memory.
type Machine struct {
	Files *Files
	Units *Units
}

// New returns a machine, and the interface of its programs to it.
func New(name string, clk clock.WithTicker) (*Machine, host.Host) {
	m := &Machine{&Files{files: map[string][]byte{}, synced: map[string][]byte{}}, &Units{active: map[string]bool{}}}
	return m, host.Host{
		Hostname: name, Addresses: []netip.Addr{netip.MustParseAddr("10.250.0.7")}, Files: m.Files, Units: m.Units,
		Clock: clk, Log: logr.Discard(),
		Metadata: host.Metadata{ProviderID: "local:///z1/" + name, Zone: "z1", Region: "here", InstanceType: "small"},
	}
}

// Files is a file system. Writes that have not been synced are lost with the power.
type Files struct {
	mu            sync.Mutex
	files, synced map[string][]byte
	full          bool
}

// Full makes Sync fail as on a full disk, or succeed again.
func (f *Files) Full(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = full
}

// Sync makes the files survive LosePower.
func (f *Files) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return syscall.ENOSPC
	}
	f.synced = maps.Clone(f.files)
	return nil
}

// LosePower resets the files to the last Sync.
func (f *Files) LosePower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files = maps.Clone(f.synced)
}

func (f *Files) ReadFile(path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.files[path]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}
	return slices.Clone(data), nil
}

func (f *Files) WriteFile(path string, data []byte, _ fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[path] = slices.Clone(data)
	return nil
}

func (f *Files) Remove(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, path)
	return nil
}

// Units records the operations on units.
type Units struct {
	mu     sync.Mutex
	active map[string]bool
	done   []string
	// OnStart, if set, is called for each unit that starts.
	OnStart func(name string)
	// Fail contains the errors of operations, by verb and unit ("start x.service").
	Fail map[string]error
}

// Done returns the operations since the last call, without reloads.
func (u *Units) Done() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	done := strings.Join(u.done, ", ")
	u.done = nil
	return done
}

func (u *Units) do(verb, name string) error {
	u.mu.Lock()
	what := verb + " " + name
	u.done = append(u.done, what)
	err, starts := u.Fail[what], verb == "start" || verb == "restart"
	if err == nil && (starts || verb == "stop") {
		u.active[name] = starts
	}
	onStart := u.OnStart
	u.mu.Unlock()
	if err == nil && starts && onStart != nil {
		onStart(name)
	}
	return err
}

func (u *Units) DaemonReload(context.Context) error { return nil }

func (u *Units) Enable(_ context.Context, name string) error { return u.do("enable", name) }

func (u *Units) Disable(_ context.Context, name string) error { return u.do("disable", name) }

func (u *Units) Start(_ context.Context, name string) error { return u.do("start", name) }

func (u *Units) Stop(_ context.Context, name string) error { return u.do("stop", name) }

func (u *Units) Restart(_ context.Context, name string) error { return u.do("restart", name) }

func (u *Units) IsActive(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.active[name]
}
