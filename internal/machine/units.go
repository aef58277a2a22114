package machine

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine/commands"
	"github.com/gardenlite/gardenlite/internal/machine/users"
)

// Unit is a systemd unit as an OperatingSystemConfig gives it.
type Unit struct {
	Name    string
	Content string
	// Enable also starts it, as the node agent does.
	Enable bool
}

// File is a file as an OperatingSystemConfig gives it. Owner is a name, root if it is empty.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode
	Owner   string
}

type unit struct {
	Name, Description, Type, ExecStart string
	Active, Enabled, Failed, Masked    bool
	Since                              time.Time
}

// Apply writes an operating system config: files first, then units; what is enabled runs. Units that exist are replaced
// and restarted if their content changed.
func (m *Machine) Apply(ctx context.Context, units []Unit, files []File) error {
	for _, f := range files {
		if err := m.writeFile(f); err != nil {
			return fmt.Errorf("writing %s on machine %s: %w", f.Path, m.cfg.Hostname, err)
		}
	}
	for _, u := range units {
		name := unitName(u.Name)
		file := "/etc/systemd/system/" + name
		old, _ := m.FS().ReadFile(file)
		if u.Content != "" {
			if err := m.writeFile(File{Path: file, Content: []byte(u.Content)}); err != nil {
				return fmt.Errorf("writing unit %s on machine %s: %w", name, m.cfg.Hostname, err)
			}
		}
		parsed := m.load(name)
		if u.Enable && (string(old) != u.Content || !parsed.Active) {
			parsed.Enabled = true
			if err := m.start(ctx, parsed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Machine) writeFile(f File) error {
	v := m.FS()
	if err := v.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
		return err
	}
	mode := f.Mode
	if mode == 0 {
		mode = 0o644
	}
	if err := v.WriteFile(f.Path, f.Content, mode); err != nil {
		return err
	}
	if err := v.Chmod(f.Path, mode); err != nil || f.Owner == "" {
		return err
	}
	user, group, _ := strings.Cut(f.Owner, ":")
	u, ok := users.Lookup(v, user)
	if !ok {
		return fmt.Errorf("owner %q %w", user, users.ErrUnknown)
	}
	gid := u.GID
	if g, ok := users.LookupGroup(v, group); ok {
		gid = g.GID
	}
	return v.Chown(f.Path, u.UID, gid, true)
}

func unitName(name string) string {
	if !strings.Contains(name, ".") {
		name += ".service"
	}
	return path.Base(name)
}

// load reads a unit's file, if it has one; a unit of the same name keeps its state.
func (m *Machine) load(name string) *unit {
	data, err := m.FS().ReadFile("/etc/systemd/system/" + name)
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.units[name]
	if u == nil {
		u = &unit{Name: name, Since: m.cfg.Clock.Now()}
		m.units[name] = u
	}
	if err != nil {
		return u
	}
	u.Type, u.ExecStart = "simple", ""
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch strings.TrimSpace(key) {
		case "Description":
			u.Description = strings.TrimSpace(value)
		case "Type":
			u.Type = strings.TrimSpace(value)
		case "ExecStart":
			u.ExecStart = strings.TrimLeft(strings.TrimSpace(value), "-@+!:")
		}
	}
	return u
}

// start runs a unit's ExecStart if it is a script of the machine. Programs that the machine does not have are simulated:
// they run without doing anything, as the kubelet and the container runtime do, which live in the landscape.
func (m *Machine) start(ctx context.Context, u *unit) error {
	m.mu.Lock()
	command, masked := u.ExecStart, u.Masked
	m.mu.Unlock()
	if masked {
		return fmt.Errorf("unit %s is masked", u.Name)
	}
	var err error
	if words := strings.Fields(command); len(words) > 0 {
		if _, statErr := m.FS().Stat(words[0]); statErr == nil {
			err = m.script(ctx, u.Name, words[0], command)
		}
	}
	m.mu.Lock()
	u.Failed, u.Since = err != nil, m.cfg.Clock.Now()
	u.Active = err == nil && u.Type != "oneshot"
	m.mu.Unlock()
	if err == nil {
		m.log(u.Name, "Started "+u.Name)
	}
	return err
}

// Control is systemctl verb unit.
func (m *Machine) Control(ctx context.Context, verb, name string) error {
	if verb == "daemon-reload" {
		return nil
	}
	name = unitName(name)
	m.mu.Lock()
	u := m.units[name]
	m.mu.Unlock()
	if _, err := m.FS().Stat("/etc/systemd/system/" + name); err == nil {
		u = m.load(name)
	}
	if u == nil {
		return fmt.Errorf("unit %s not found", name)
	}
	switch verb {
	case "start", "restart", "reload", "try-restart", "reload-or-restart":
		return m.start(ctx, u)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch verb {
	case "stop":
		u.Active, u.Since = false, m.cfg.Clock.Now()
	case "enable", "disable":
		u.Enabled = verb == "enable"
	case "mask", "unmask":
		u.Masked = verb == "mask"
	case "reset-failed":
		u.Failed = false
	default:
		return fmt.Errorf("unknown command verb %s", verb)
	}
	return nil
}

// Active says whether a unit runs.
func (m *Machine) Active(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.units[unitName(name)]
	return u != nil && u.Active
}

func (s system) Control(verb, name string) error {
	// A unit's script has limits of its own.
	return s.m.Control(context.Background(), verb, name)
}

func (s system) Units() []commands.Unit {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	var all []commands.Unit
	for _, name := range slices.Sorted(maps.Keys(s.m.units)) {
		u := s.m.units[name]
		c := commands.Unit{Name: u.Name, Description: u.Description, Load: "loaded", Active: "inactive", Sub: "dead", Enabled: u.Enabled, Since: u.Since}
		switch {
		case u.Masked:
			c.Load = "masked"
		case u.Failed:
			c.Active, c.Sub = "failed", "failed"
		case u.Active:
			c.Active, c.Sub = "active", "running"
		}
		all = append(all, c)
	}
	return all
}
