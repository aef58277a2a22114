package shell

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

func unitName(name string) string {
	for _, suffix := range []string{".service", ".target", ".socket", ".timer", ".mount", ".slice", ".path"} {
		if strings.HasSuffix(name, suffix) {
			return name
		}
	}
	return name + ".service"
}

func (p *Process) units() Units {
	if p.sh.s.o.System == nil {
		return nil
	}
	return p.sh.s.o.System.Units()
}

// unitChanges are the verbs of systemctl that change a unit.
var unitChanges = map[string]func(ctx context.Context, u Units, name string) error{
	"start":             func(ctx context.Context, u Units, name string) error { return u.Start(ctx, name) },
	"stop":              func(ctx context.Context, u Units, name string) error { return u.Stop(ctx, name) },
	"restart":           restartUnit,
	"reload":            restartUnit,
	"reload-or-restart": restartUnit,
	"try-restart": func(ctx context.Context, u Units, name string) error {
		if unit, ok := u.Unit(name); !ok || unit.Active != "active" {
			return nil
		}
		return u.Restart(ctx, name)
	},
	"enable":  func(_ context.Context, u Units, name string) error { return u.Enable(name) },
	"disable": func(_ context.Context, u Units, name string) error { return u.Disable(name) },
	"mask":    func(_ context.Context, u Units, name string) error { return u.Mask(name, true) },
	"unmask":  func(_ context.Context, u Units, name string) error { return u.Mask(name, false) },
}

func restartUnit(ctx context.Context, u Units, name string) error { return u.Restart(ctx, name) }

// alsoNow are the verbs that --now adds to others.
var alsoNow = map[string]string{"enable": "start", "disable": "stop", "mask": "stop"}

func systemctlProgram(p *Process, f flags) int {
	verb, names := append(f.args, "list-units")[0], f.args[min(1, len(f.args)):]
	switch verb {
	case "reboot":
		return p.power(Reboot)
	case "poweroff", "halt":
		return p.power(PowerOff)
	}
	units := p.units()
	if units == nil {
		return p.Failf(1, "there is no service manager on this machine")
	}
	for i := range names {
		names[i] = unitName(names[i])
	}
	switch verb {
	case "list-units", "list-unit-files":
		const columns = "%-40s %-8s %-10s %-10s %-8s %s\n"
		p.Printf(columns, "UNIT", "LOAD", "ACTIVE", "SUB", "STATE", "DESCRIPTION")
		for _, u := range units.List() {
			p.Printf(columns, u.Name, u.Load, u.Active, u.Sub, u.Enabled, u.Description)
		}
		return 0
	case "is-system-running":
		p.Printf("running\n")
		return 0
	case "is-active", "is-enabled", "is-failed", "status", "show", "cat":
		status := 0
		for _, name := range names {
			if code := p.queryUnit(units, verb, name, f); code != 0 {
				status = code
			}
		}
		return status
	}
	change := unitChanges[verb]
	switch {
	case p.User.UID != 0:
		return p.Failf(1, "Access denied: only root may %s units", verb)
	case verb == "daemon-reload" || verb == "daemon-reexec" || verb == "reset-failed":
		return p.done(units.DaemonReload())
	case change == nil:
		return p.Failf(1, "Unknown command verb %s.", verb)
	case len(names) == 0:
		return p.Failf(1, "Too few arguments.")
	}
	status := 0
	for _, name := range names {
		err := change(p.sh.ctx, units, name)
		if also := unitChanges[alsoNow[verb]]; err == nil && also != nil && f.has('w') {
			err = also(p.sh.ctx, units, name)
		}
		if err != nil {
			status = p.Fail(err)
		}
	}
	return status
}

func (p *Process) queryUnit(units Units, verb, name string, f flags) int {
	u, ok := units.Unit(name)
	if !ok {
		u = Unit{Name: name, Load: "not-found", Active: "inactive", Sub: "dead", Enabled: "not-found"}
	}
	checks := map[string][]string{ // what is shown, and what is good
		"is-active":  {u.Active, "active"},
		"is-failed":  {u.Active, "failed"},
		"is-enabled": {u.Enabled, "enabled", "static"},
	}
	if check := checks[verb]; check != nil {
		if !f.has('q') {
			p.Printf("%s\n", check[0])
		}
		switch {
		case slices.Contains(check[1:], check[0]):
			return 0
		case verb == "is-active":
			return 3
		}
		return 1
	}
	if verb == "show" {
		p.showUnit(u, f)
		return 0
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

func (p *Process) showUnit(u Unit, f flags) {
	wanted := strings.Join(f.values['p'], ",")
	for _, row := range [][2]string{
		{"Id", u.Name}, {"Description", u.Description}, {"LoadState", u.Load}, {"ActiveState", u.Active},
		{"SubState", u.Sub}, {"UnitFileState", u.Enabled}, {"FragmentPath", u.Path},
		{"MainPID", strconv.Itoa(u.MainPID)},
	} {
		if wanted != "" && !inList(wanted, row[0]) {
			continue
		}
		if f.has('v') {
			p.Printf("%s\n", row[1])
		} else {
			p.Printf("%s=%s\n", row[0], row[1])
		}
	}
}

func (p *Process) printEntry(e JournalEntry) {
	when := e.Time.UTC().Format("Jan 02 15:04:05")
	p.Printf("%s %s %s[%d]: %s\n", when, p.sh.s.hostname(), e.Identifier, e.PID, e.Message)
}

func journalctlProgram(p *Process, f flags) int {
	groups := loadNames(p.FS.FS())
	if p.User.UID != 0 && !slices.ContainsFunc(p.User.Groups, func(g uint32) bool {
		return slices.Contains([]string{"adm", "systemd-journal", "wheel", "sudo"}, groups.group(g))
	}) {
		return p.Failf(1, "No journal files were opened due to insufficient permissions.")
	}
	n, err := f.number('n', 0)
	if err != nil {
		return p.Fail(err)
	}
	unit := f.value('u', "")
	if unit != "" {
		unit = unitName(unit)
	}
	var entries []JournalEntry
	if units := p.units(); units != nil {
		entries = units.Journal(unit, n)
	}
	if f.has('r') {
		slices.Reverse(entries)
	}
	if len(entries) == 0 {
		p.Printf("-- No entries --\n")
	}
	for _, e := range entries {
		if p.step() != nil {
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
