package shell

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

var unitCommands = map[string]Command{"systemctl": systemctlProgram, "journalctl": journalctlProgram}

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

func systemctlProgram(ctx context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "qaln:p:t:fo:vw", map[string]byte{
		"now": 'w', "quiet": 'q', "all": 'a', "no-pager": 'l', "full": 'l', "no-block": 'l', "force": 'f', "property": 'p', "value": 'v', "type": 't', "plain": 'l', "no-legend": 'l', "system": 'l', "state": 'o', "lines": 'n', "output": 'o',
	}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	verb, names := "list-units", []string{}
	if len(f.args) > 0 {
		verb, names = f.args[0], f.args[1:]
	}
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
		listUnits(p, units, verb == "list-unit-files")
		return 0
	case "is-system-running":
		p.Printf("running\n")
		return 0
	case "is-active", "is-enabled", "is-failed", "status", "show", "cat":
		return queryUnits(p, units, verb, names, f)
	}
	if p.User.UID != 0 {
		return p.Failf(1, "Access denied: only root may %s units", verb)
	}
	return changeUnits(ctx, p, units, verb, names, f.has('w'))
}

func listUnits(p *Process, units Units, files bool) {
	p.Printf("%-40s %-8s %-10s %-10s %s\n", "UNIT", "LOAD", "ACTIVE", "SUB", "DESCRIPTION")
	for _, u := range units.List() {
		if files {
			p.Printf("%-40s %s\n", u.Name, u.Enabled)
			continue
		}
		p.Printf("%-40s %-8s %-10s %-10s %s\n", u.Name, u.Load, u.Active, u.Sub, u.Description)
	}
}

func queryUnits(p *Process, units Units, verb string, names []string, f flags) int {
	status := 0
	for _, name := range names {
		u, ok := units.Unit(name)
		if !ok {
			u = Unit{Name: name, Load: "not-found", Active: "inactive", Sub: "dead", Enabled: "not-found"}
		}
		say := func(text string, good bool, bad int) {
			if !f.has('q') {
				p.Printf("%s\n", text)
			}
			if !good {
				status = bad
			}
		}
		switch verb {
		case "is-active":
			say(u.Active, u.Active == "active", 3)
		case "is-failed":
			say(u.Active, u.Active == "failed", 1)
		case "is-enabled":
			say(u.Enabled, u.Enabled == "enabled" || u.Enabled == "static", 1)
		case "show":
			showUnit(p, u, f)
		case "cat":
			text, err := p.readFile(u.Path)
			if err != nil {
				return p.Fail(err)
			}
			p.Printf("# %s\n%s", u.Path, text)
		default:
			if !ok {
				return p.Failf(4, "Unit %s could not be found.", name)
			}
			statusOf(p, units, u)
			if u.Active != "active" {
				status = 3
			}
		}
	}
	return status
}

func showUnit(p *Process, u Unit, f flags) {
	var wanted []string
	for _, v := range f.values['p'] {
		wanted = append(wanted, strings.Split(v, ",")...)
	}
	for _, row := range [][2]string{{"Id", u.Name}, {"Description", u.Description}, {"LoadState", u.Load}, {"ActiveState", u.Active}, {"SubState", u.Sub}, {"UnitFileState", u.Enabled}, {"FragmentPath", u.Path}, {"MainPID", strconv.Itoa(u.MainPID)}} {
		if len(wanted) > 0 && !slices.Contains(wanted, row[0]) {
			continue
		}
		if f.has('v') {
			p.Printf("%s\n", row[1])
		} else {
			p.Printf("%s=%s\n", row[0], row[1])
		}
	}
}

func statusOf(p *Process, units Units, u Unit) {
	p.Printf("● %s - %s\n     Loaded: %s (%s; %s)\n     Active: %s (%s) since %s\n", u.Name, u.Description, u.Load, u.Path, u.Enabled, u.Active, u.Sub, u.Since.UTC().Format("Mon 2006-01-02 15:04:05 UTC"))
	if u.MainPID > 0 {
		p.Printf("   Main PID: %d\n", u.MainPID)
	}
	if u.Result != "" {
		p.Printf("     Result: %s\n", u.Result)
	}
	p.Printf("\n")
	for _, e := range units.Journal(u.Name, 10) {
		printEntry(p, e)
	}
}

func changeUnits(ctx context.Context, p *Process, units Units, verb string, names []string, now bool) int {
	if verb == "daemon-reload" || verb == "daemon-reexec" || verb == "reset-failed" {
		if err := units.DaemonReload(); err != nil {
			return p.Fail(err)
		}
		return 0
	}
	do := map[string]func(string) error{
		"start":   func(n string) error { return units.Start(ctx, n) },
		"stop":    func(n string) error { return units.Stop(ctx, n) },
		"restart": func(n string) error { return units.Restart(ctx, n) },
		"reload":  func(n string) error { return units.Restart(ctx, n) },
		"try-restart": func(n string) error {
			if u, ok := units.Unit(n); !ok || u.Active != "active" {
				return nil
			}
			return units.Restart(ctx, n)
		},
		"enable":  units.Enable,
		"disable": units.Disable,
		"mask":    func(n string) error { return units.Mask(n, true) },
		"unmask":  func(n string) error { return units.Mask(n, false) },
	}
	do["reload-or-restart"] = do["restart"]
	fn := do[verb]
	if fn == nil {
		return p.Failf(1, "Unknown command verb %s.", verb)
	}
	if len(names) == 0 {
		return p.Failf(1, "Too few arguments.")
	}
	status := 0
	for _, name := range names {
		err := fn(name)
		if err == nil && now && verb == "enable" {
			err = units.Start(ctx, name)
		}
		if err == nil && now && (verb == "disable" || verb == "mask") {
			err = units.Stop(ctx, name)
		}
		if err != nil {
			status = p.Fail(err)
		}
	}
	return status
}

func printEntry(p *Process, e JournalEntry) {
	p.Printf("%s %s %s[%d]: %s\n", e.Time.UTC().Format("Jan 02 15:04:05"), p.sh.s.hostname(), e.Identifier, e.PID, e.Message)
}

func journalctlProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "u:n:fexb:o:rqS:t:k", map[string]byte{"unit": 'u', "lines": 'n', "no-pager": 'q', "follow": 'f', "boot": 'q', "output": 'o', "since": 'S', "quiet": 'q', "reverse": 'r'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	if p.User.UID != 0 && !slices.ContainsFunc(p.User.Groups, func(g uint32) bool {
		return slices.Contains([]string{"adm", "systemd-journal", "wheel", "sudo"}, loadNames(p.FS.FS()).group(g))
	}) {
		return p.Failf(1, "No journal files were opened due to insufficient permissions.")
	}
	units := p.units()
	if units == nil {
		p.Printf("-- No entries --\n")
		return 0
	}
	n, err := strconv.Atoi(f.value('n', "0"))
	if err != nil {
		return p.Fail(err)
	}
	unit := ""
	if f.has('u') {
		unit = unitName(f.value('u', ""))
	}
	entries := units.Journal(unit, n)
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
		printEntry(p, e)
	}
	return 0
}
