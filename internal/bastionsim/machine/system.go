package machine

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
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
		if d := one.definition; one.pid != 0 && d != nil && len(d.start) > 0 {
			all = append(all, shell.ProcessInfo{
				PID: one.pid, PPID: 1, User: cmp.Or(d.user, "root"), Started: one.since, Command: d.start[0].String(),
			})
		}
	}
	slices.SortFunc(all, func(a, b shell.ProcessInfo) int { return a.PID - b.PID })
	return all
}

func (s system) Units() shell.Units { return s.m.units }

func (s system) Power(action shell.PowerAction) error {
	select {
	case s.m.power <- action:
	default: // it goes down already
	}
	return nil
}

var _ shell.Units = &Units{}

// Unit returns the state of a unit.
func (u *Units) Unit(name string) (shell.Unit, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one, err := u.get(name)
	if err != nil {
		return shell.Unit{}, false
	}
	return u.status(one), true
}

// List returns all units that are loaded or have a file, sorted by name.
func (u *Units) List() (units []shell.Unit) {
	names := map[string]bool{}
	for name := range builtin {
		names[name] = true
	}
	view := u.m.fs.As(vfs.Root)
	for _, dir := range unitPath {
		entries, _ := view.ReadDir(dir) // most machines have only one of them
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), unitSuffix) {
				names[entry.Name()] = true
			}
		}
	}
	u.mu.Lock()
	for name := range u.loaded {
		names[name] = true
	}
	u.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if unit, ok := u.Unit(name); ok {
			units = append(units, unit)
		}
	}
	return units
}

// status returns the state of a unit as systemctl shows it. The lock is held.
func (u *Units) status(one *unit) shell.Unit {
	status := shell.Unit{
		Name: one.name, Path: one.path, Load: one.load, Active: one.active, Sub: one.sub, Enabled: "disabled",
		MainPID: one.pid, Since: one.since, Result: one.result,
	}
	if one.load == loadMasked {
		status.Enabled = loadMasked
	} else if len(u.wants(one.name)) > 0 {
		status.Enabled = "enabled"
	}
	if one.definition != nil {
		status.Description = one.definition.description
	}
	if one.loadErr != nil && !errors.Is(one.loadErr, ErrNoUnit) && status.Result == "" {
		status.Result = one.loadErr.Error()
	}
	return status
}
