package shell

import (
	"context"
	"path"
	"slices"
)

// UnitName returns the full name of a unit: services may be named without their suffix.
func UnitName(name string) string {
	switch path.Ext(name) {
	case ".service", ".target", ".socket", ".timer", ".mount", ".slice", ".path":
		return name
	}
	return name + ".service"
}

// unitChanges are the verbs of systemctl that change a unit.
var unitChanges = map[string]func(u Units, ctx context.Context, name string) error{
	"start":   Units.Start,
	"stop":    Units.Stop,
	"restart": Units.Restart,
	"enable":  Units.Enable,
	"disable": Units.Disable,
	"mask":    func(u Units, _ context.Context, name string) error { return u.Mask(name, true) },
	"unmask":  func(u Units, _ context.Context, name string) error { return u.Mask(name, false) },
}

// alsoNow maps verbs to the verb that --now adds.
var alsoNow = map[string]string{"enable": "start", "disable": "stop", "mask": "stop"}

func systemctlProgram(p *Process, f flags) int {
	verb, names := append(f.args, "list-units")[0], f.args[min(1, len(f.args)):]
	switch verb {
	case "reboot":
		return p.power(Reboot)
	case "poweroff", "halt":
		return p.power(PowerOff)
	}
	units := p.s.o.System.Units()
	for i := range names {
		names[i] = UnitName(names[i])
	}
	switch verb {
	case "list-units":
		const columns = "%-40s %-8s %-10s %-10s %-8s %s\n"
		p.Printf(columns, "UNIT", "LOAD", "ACTIVE", "SUB", "STATE", "DESCRIPTION")
		for _, u := range units.List() {
			p.Printf(columns, u.Name, u.Load, u.Active, u.Sub, u.Enabled, u.Description)
		}
		return 0
	case "is-active", "is-enabled", "status", "cat":
		status := 0
		for _, name := range names {
			status = max(status, p.queryUnit(units, verb, name, f))
		}
		return status
	}
	change := unitChanges[verb]
	switch {
	case p.user.UID != 0:
		return p.Failf(1, "Access denied: only root may %s units", verb)
	case verb == "daemon-reload":
		return p.done(units.DaemonReload(p.ctx))
	case change == nil:
		return p.Failf(1, "Unknown command verb %s.", verb)
	case len(names) == 0:
		return p.Failf(1, "Too few arguments.")
	}
	status := 0
	for _, name := range names {
		err := change(units, p.ctx, name)
		if also := unitChanges[alsoNow[verb]]; err == nil && also != nil && f.has('w') {
			err = also(units, p.ctx, name)
		}
		if err != nil {
			status = p.Fail(err)
		}
	}
	return status
}

// queryUnit prints a unit, and returns 0 if the unit is in the state that the verb asks about.
func (p *Process) queryUnit(units Units, verb, name string, f flags) int {
	u, ok := units.Unit(name)
	if !ok {
		u = Unit{Name: name, Active: "inactive", Enabled: "not-found"}
	}
	switch verb {
	case "is-active":
		return p.unitState(f, u.Active, 3, "active")
	case "is-enabled":
		return p.unitState(f, u.Enabled, 1, "enabled", "static")
	}
	if !ok {
		return p.Failf(4, "Unit %s could not be found.", name)
	}
	if verb == "cat" {
		text, err := p.readFile(u.Path)
		p.Printf("# %s\n%s", u.Path, text)
		return p.done(err)
	}
	p.Printf("● %s - %s\n     Loaded: %s (%s; %s)\n     Active: %s (%s) since %s\n", u.Name, u.Description, u.Load,
		u.Path, u.Enabled, u.Active, u.Sub, u.Since.UTC().Format("Mon 2006-01-02 15:04:05 UTC"))
	if u.MainPID > 0 {
		p.Printf("   Main PID: %d\n", u.MainPID)
	}
	if u.Result != "" {
		p.Printf("     Result: %s\n", u.Result)
	}
	p.Printf("\n")
	for _, e := range units.Journal(u.Name, 10) {
		p.printEntry(e)
	}
	if u.Active != "active" {
		return 3
	}
	return 0
}

// unitState prints a state, except with -q. It returns 0 for a good state, and status for all others.
func (p *Process) unitState(f flags, state string, status int, good ...string) int {
	if !f.has('q') {
		p.Printf("%s\n", state)
	}
	if slices.Contains(good, state) {
		return 0
	}
	return status
}

func (p *Process) printEntry(e JournalEntry) {
	when := e.Time.UTC().Format("Jan 02 15:04:05")
	p.Printf("%s %s %s[%d]: %s\n", when, p.s.o.System.Hostname(), e.Identifier, e.PID, e.Message)
}

func journalctlProgram(p *Process, f flags) int {
	groups := LoadNames(p.fs.FS())
	if p.user.UID != 0 && !slices.ContainsFunc(p.user.Groups, func(g uint32) bool {
		return slices.Contains([]string{"adm", "systemd-journal", "wheel", "sudo"}, groups.Group(g))
	}) {
		return p.Failf(1, "No journal files were opened due to insufficient permissions.")
	}
	n, err := f.number('n', 0)
	if err != nil {
		return p.Fail(err)
	}
	unit := f.value('u', "")
	if unit != "" {
		unit = UnitName(unit)
	}
	entries := p.s.o.System.Units().Journal(unit, n)
	if len(entries) == 0 {
		p.Printf("-- No entries --\n")
	}
	for _, e := range entries {
		if p.step(1) != nil {
			return 1
		}
		if f.value('o', "") == "cat" {
			p.Printf("%s\n", e.Message)
			continue
		}
		p.printEntry(e)
	}
	return 0
}
