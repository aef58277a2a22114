package machine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// system is the machine as the sessions on it see it.
type system struct{ m *Machine }

var _ shell.System = system{}

func (s system) Hostname() string { return s.m.Hostname() }

func (s system) Addresses() (prefixes []netip.Prefix) {
	for _, address := range s.m.cfg.Addresses {
		bits := address.BitLen()
		if s.m.cfg.Network.Contains(address) {
			bits = s.m.cfg.Network.Bits()
		}
		prefixes = append(prefixes, netip.PrefixFrom(address, bits))
	}
	return prefixes
}

func (s system) Booted() time.Time {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.m.bootedAt
}

func (s system) Processes() []shell.ProcessInfo {
	all := []shell.ProcessInfo{{PID: 1, User: "root", Started: s.Booted(), Command: "/sbin/init"}}
	u := s.m.units
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.loaded {
		if one.pid == 0 || one.definition == nil || len(one.definition.start) == 0 {
			continue
		}
		user := one.definition.user
		if user == "" {
			user = "root"
		}
		all = append(all, shell.ProcessInfo{PID: one.pid, PPID: 1, User: user, Started: one.since, Command: one.definition.start[0].String()})
	}
	slices.SortFunc(all, func(a, b shell.ProcessInfo) int { return a.PID - b.PID })
	return all
}

func (s system) Units() shell.Units { return systemUnits{s.m.units} }

func (s system) Power(action shell.PowerAction) error {
	if action != shell.PowerOff && action != shell.Reboot {
		return fmt.Errorf("unknown power action %q", action)
	}
	select {
	case s.m.power <- action:
	default: // it goes down already
	}
	return nil
}

// systemUnits is the view of systemctl and journalctl on the units.
type systemUnits struct{ u *Units }

var _ shell.Units = systemUnits{}

func (s systemUnits) Start(ctx context.Context, name string) error   { return s.u.Start(ctx, name) }
func (s systemUnits) Stop(ctx context.Context, name string) error    { return s.u.Stop(ctx, name) }
func (s systemUnits) Restart(ctx context.Context, name string) error { return s.u.Restart(ctx, name) }
func (s systemUnits) Enable(name string) error                       { return s.u.enable(name) }
func (s systemUnits) Disable(name string) error                      { return s.u.Disable(context.Background(), name) }
func (s systemUnits) Mask(name string, mask bool) error              { return s.u.Mask(name, mask) }
func (s systemUnits) DaemonReload() error                            { return s.u.DaemonReload(context.Background()) }

func (s systemUnits) Journal(unit string, n int) []shell.JournalEntry { return s.u.entries(unit, n) }

func (s systemUnits) Unit(name string) (shell.Unit, bool) {
	s.u.mu.Lock()
	one, err := s.u.get(name)
	if err != nil {
		s.u.mu.Unlock()
		return shell.Unit{}, false
	}
	status := one.status()
	s.u.mu.Unlock()
	status.Enabled = s.u.enablement(one.name, status.Load)
	return status, true
}

func (s systemUnits) List() (units []shell.Unit) {
	names := map[string]bool{}
	for name := range builtin {
		names[name] = true
	}
	view := s.u.m.fs.As(vfs.Root)
	for _, dir := range unitPath {
		entries, _ := view.ReadDir(dir) // most machines have only one of them
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), unitSuffix) {
				names[path.Base(entry.Name())] = true
			}
		}
	}
	s.u.mu.Lock()
	for name := range s.u.loaded {
		names[name] = true
	}
	s.u.mu.Unlock()
	for name := range names {
		if unit, ok := s.Unit(name); ok {
			units = append(units, unit)
		}
	}
	slices.SortFunc(units, func(a, b shell.Unit) int { return strings.Compare(a.Name, b.Name) })
	return units
}

// status returns the state of a unit as systemctl shows it. Units.mu is held.
func (one *unit) status() shell.Unit {
	status := shell.Unit{
		Name: one.name, Path: one.path, Load: one.load, Active: one.active, Sub: one.sub,
		MainPID: one.pid, Since: one.since, Result: one.result,
	}
	if one.definition != nil {
		status.Description = one.definition.description
	}
	if one.loadErr != nil && !errors.Is(one.loadErr, ErrNoUnit) && status.Result == "" {
		status.Result = one.loadErr.Error()
	}
	return status
}

func (u *Units) enablement(name, load string) string {
	switch {
	case load == loadMasked:
		return loadMasked
	case u.IsEnabled(name):
		return "enabled"
	default:
		return "disabled"
	}
}
