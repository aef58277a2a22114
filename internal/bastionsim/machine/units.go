package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

const (
	unitDir     = "/etc/systemd/system"
	unitSuffix  = ".service"
	sshUnit     = "ssh.service"
	sshdProgram = "/usr/sbin/sshd"
	maskTarget  = "/dev/null"
	// defaultTarget is the target of an enabled unit that has no WantedBy.
	defaultTarget = "multi-user.target"
)

// unitPath are the folders with unit files; the first one that has a file wins.
var unitPath = []string{unitDir, "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// builtin are the units that every machine has, unless it has a file of that name.
var builtin = map[string]string{
	sshUnit: "[Unit]\nDescription=OpenBSD Secure Shell server\n[Service]\nExecStart=" + sshdProgram + " -D\nRestart=on-failure\n" +
		"[Install]\nWantedBy=multi-user.target\n",
	"systemd-sysctl.service": "[Unit]\nDescription=Apply Kernel Variables\n[Service]\nType=oneshot\nRemainAfterExit=yes\n" +
		"ExecStart=/usr/sbin/sysctl --system\n[Install]\nWantedBy=multi-user.target\n",
}

var aliases = map[string]string{"sshd.service": sshUnit}

// ErrNoUnit means that there is no unit of that name.
var ErrNoUnit = errors.New("there is no such unit")

// Units are a machine's services, in the way of systemd: unit files, most of them in /etc/systemd/system of the
// machine's file system, with drop-ins. Names may be given with or without ".service".
type Units struct {
	m     *Machine
	group sync.WaitGroup // of what runs; Add is under mu, before base has ended

	mu      sync.Mutex
	loaded  map[string]*unit
	base    context.Context // of what runs; nil while the machine does not run
	cancel  context.CancelFunc
	nextPID int
}

func newUnits(m *Machine) *Units {
	return &Units{m: m, loaded: map[string]*unit{}, nextPID: 300}
}

// begin allows units to be started until ctx ends or shutdown is called.
func (u *Units) begin(ctx context.Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.base, u.cancel = context.WithCancel(ctx)
	for _, one := range u.loaded {
		one.reset()
	}
}

// shutdown stops all units and waits until they have ended.
func (u *Units) shutdown() {
	u.mu.Lock()
	u.cancel()
	u.base = nil
	u.mu.Unlock()
	u.group.Wait()
}

// fullName adds the suffix to a unit's name, and resolves aliases.
func fullName(name string) (string, error) {
	name = shell.UnitName(name)
	name = cmp.Or(aliases[name], name)
	stem, isService := strings.CutSuffix(name, unitSuffix)
	if !isService || stem == "" || strings.ContainsAny(name, "/\x00\n") || len(name) > 255 {
		return "", fmt.Errorf("unit %q: %w: only services are supported", name, ErrNoUnit)
	}
	return name, nil
}

// get returns a unit, and reads its files first if necessary. The lock is held.
func (u *Units) get(name string) (*unit, error) {
	name, err := fullName(name)
	if err != nil {
		return nil, err
	}
	one := u.loaded[name]
	if one == nil {
		if len(u.loaded) >= MaxUnits {
			u.forget(true)
		}
		if len(u.loaded) >= MaxUnits {
			return nil, fmt.Errorf("loading unit %s: the machine has %d units already", name, MaxUnits)
		}
		one = &unit{name: name, active: activeInactive, sub: subDead}
	}
	if one.definition == nil {
		u.read(one)
	}
	if one.load == loadNotFound && len(one.journal.entries) == 0 {
		return nil, fmt.Errorf("unit %s: %w; write %s/%s first", name, ErrNoUnit, unitDir, name)
	}
	u.loaded[name] = one
	return one, nil
}

// read reads a unit's files and sets its load state.
func (u *Units) read(one *unit) {
	one.load, one.loadErr = loadLoaded, nil
	text, file, err := u.text(one.name)
	one.path = file
	switch {
	case errors.Is(err, fs.ErrNotExist):
		one.load, one.loadErr = loadNotFound, fmt.Errorf("unit %s: %w", one.name, ErrNoUnit)
		return
	case err == nil && text == maskTarget:
		one.load, one.loadErr = loadMasked, fmt.Errorf("unit %s is masked", one.name)
		return
	case err == nil:
		one.definition, err = parseUnit(text)
	}
	if err != nil {
		one.load, one.loadErr = loadBad, fmt.Errorf("reading unit %s: %w", one.name, err)
	}
}

// text returns the unit's file followed by its drop-ins, or maskTarget for a masked unit.
func (u *Units) text(name string) (text, file string, err error) {
	view := u.m.fs.As(vfs.Root)
	err = fs.ErrNotExist
	for _, dir := range unitPath {
		file = path.Join(dir, name)
		if target, linkErr := view.Readlink(file); linkErr == nil && target == maskTarget {
			return maskTarget, file, nil
		}
		var data []byte
		if data, err = u.m.fs.ReadFile(file); err == nil {
			text = string(data)
			break
		}
	}
	if err != nil {
		if text, file = builtin[name], ""; text == "" {
			return "", "", err
		}
	}
	dropIns, _ := view.ReadDir(path.Join(unitDir, name+".d")) // most units have none
	for _, entry := range dropIns {
		if !strings.HasSuffix(entry.Name(), ".conf") {
			continue
		}
		data, err := u.m.fs.ReadFile(path.Join(unitDir, name+".d", entry.Name()))
		if err != nil {
			return "", file, err
		}
		if text += "\n" + string(data); len(text) > MaxUnitFile {
			break // parseUnit refuses it
		}
	}
	return text, file, nil
}

// forget drops units that have no file and do not run; those with a journal only if journals is true. The lock is held.
func (u *Units) forget(journals bool) {
	for name, one := range u.loaded {
		if one.run == nil && one.load == loadNotFound && (journals || len(one.journal.entries) == 0) {
			delete(u.loaded, name)
		}
	}
}

// DaemonReload reads the unit files again. Running units keep the definition that they were started with.
func (u *Units) DaemonReload(context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.loaded {
		one.definition = nil
		u.read(one)
	}
	u.forget(false)
	return nil
}

// Enable makes a unit start at every boot.
func (u *Units) Enable(_ context.Context, name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	one, err := u.get(name)
	if err == nil {
		err = one.loadErr
	}
	if err != nil {
		return fmt.Errorf("enabling: %w", err)
	}
	view := u.m.fs.As(vfs.Root)
	target := one.path
	if target == "" {
		target = path.Join("/usr/lib/systemd/system", one.name)
	}
	for _, by := range one.definition.targets() {
		dir := path.Join(unitDir, by+".wants")
		err := view.MkdirAll(dir, 0o755)
		if err == nil {
			err = view.Symlink(target, path.Join(dir, one.name))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("enabling unit %s: %w", one.name, err)
		}
	}
	return nil
}

// targets returns the targets that start the unit when it is enabled.
func (d *definition) targets() []string {
	wanted := slices.DeleteFunc(slices.Clone(d.wantedBy), func(by string) bool { return strings.Contains(by, "/") })
	if len(wanted) == 0 {
		return []string{defaultTarget}
	}
	return wanted
}

// Disable makes a unit not start at boot any more. The unit's file may be missing.
func (u *Units) Disable(_ context.Context, name string) error {
	name, err := fullName(name)
	if err != nil {
		return fmt.Errorf("disabling: %w", err)
	}
	for _, link := range u.wants(name) {
		if err := u.m.fs.As(vfs.Root).Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("disabling unit %s: %w", name, err)
		}
	}
	return nil
}

// Mask makes a unit impossible to start, or undoes that.
func (u *Units) Mask(name string, mask bool) error {
	name, err := fullName(name)
	if err != nil {
		return fmt.Errorf("masking: %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	view, file := u.m.fs.As(vfs.Root), path.Join(unitDir, name)
	target, linkErr := view.Readlink(file)
	masked := linkErr == nil && target == maskTarget
	switch {
	case mask && !masked:
		err = view.Symlink(maskTarget, file)
	case !mask && masked:
		err = view.Remove(file)
	}
	if err != nil {
		return fmt.Errorf("masking unit %s: %w", name, err)
	}
	if one := u.loaded[name]; one != nil {
		one.definition = nil
		u.read(one)
	}
	return nil
}

// wants returns the links that start a unit at boot, or those of all units if name is empty.
func (u *Units) wants(name string) (links []string) {
	view := u.m.fs.As(vfs.Root)
	dirs, _ := view.ReadDir(unitDir) // a machine without it has no units
	for _, dir := range dirs {
		if !dir.IsDir() || !strings.HasSuffix(dir.Name(), ".wants") {
			continue
		}
		entries, _ := view.ReadDir(path.Join(unitDir, dir.Name()))
		for _, entry := range entries {
			if name == "" && strings.HasSuffix(entry.Name(), unitSuffix) || entry.Name() == name {
				links = append(links, path.Join(unitDir, dir.Name(), entry.Name()))
			}
		}
	}
	return links
}

// IsActive reports whether a unit is active.
func (u *Units) IsActive(name string) bool {
	name, err := fullName(name)
	if err != nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.loaded[name]
	return one != nil && one.active == activeActive
}

// startEnabled starts the enabled units in the order of their After settings.
func (u *Units) startEnabled(ctx context.Context) {
	var names []string
	for _, link := range u.wants("") {
		names = append(names, path.Base(link))
	}
	slices.Sort(names)
	for _, name := range u.ordered(slices.Compact(names)) {
		if err := u.Start(ctx, name); err != nil && ctx.Err() == nil {
			u.log(name, "systemd", 1, err.Error())
		}
	}
}

// ordered sorts units so that each comes after those in its After, where that is possible.
func (u *Units) ordered(names []string) (sorted []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] || !slices.Contains(names, name) {
			return
		}
		seen[name] = true
		if one, err := u.get(name); err == nil && one.definition != nil {
			for _, before := range one.definition.after {
				visit(before)
			}
		}
		sorted = append(sorted, name)
	}
	for _, name := range names {
		visit(name)
	}
	return sorted
}

func (u *Units) log(name, identifier string, pid int, message string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.loaded[name]
	if one == nil {
		if len(u.loaded) >= MaxUnits {
			return
		}
		one = &unit{name: name, active: activeInactive, sub: subDead}
		u.read(one)
		u.loaded[name] = one
	}
	one.journal.add(shell.JournalEntry{Time: u.m.cfg.Clock.Now(), Unit: name, Identifier: identifier, PID: pid, Message: message})
}

// Journal returns the last n entries of a unit, or of all units, sorted by time, if name is empty. If n is not positive,
// it returns all that are kept.
func (u *Units) Journal(name string, n int) (entries []shell.JournalEntry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	full, err := fullName(name)
	for _, one := range u.loaded {
		if name == "" || err == nil && one.name == full {
			entries = append(entries, one.journal.entries...)
		}
	}
	slices.SortStableFunc(entries, func(a, b shell.JournalEntry) int { return a.Time.Compare(b.Time) })
	if n > 0 && len(entries) > n {
		entries = entries[len(entries)-n:]
	}
	return entries
}
