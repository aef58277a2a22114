package shell

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

func nothingProgram(context.Context, *Process) int { return 0 }

var systemCommands = map[string]Command{
	"true": nothingProgram, "false": func(context.Context, *Process) int { return 1 }, "sync": nothingProgram, "clear": nothingProgram,
	"modprobe": rootOnly(nothingProgram),
	"env":      envProgram, "printenv": printenvProgram, "which": whichProgram, "date": dateProgram, "sleep": sleepProgram, "timeout": timeoutProgram,
	"uname": unameProgram, "uptime": uptimeProgram, "hostname": hostnameProgram, "nproc": func(_ context.Context, p *Process) int { p.Printf("2\n"); return 0 },
	"ps": psProgram, "mount": mountProgram, "sysctl": rootOnly(nothingProgram),
	"less": catProgram, "test": builtinProgram, "[": builtinProgram, "echo": builtinProgram, "printf": builtinProgram, "kill": builtinProgram, "pwd": builtinProgram,
	"bash": bashProgram, "sh": bashProgram, "reboot": powerProgram, "shutdown": powerProgram, "poweroff": powerProgram,
	"mkfifo": refused,
}

// refused are programs that exist and may not do anything here.
func refused(_ context.Context, p *Process) int {
	return p.Failf(1, "Operation not permitted: this machine is simulated")
}

func rootOnly(c Command) Command {
	return func(ctx context.Context, p *Process) int {
		if p.User.UID != 0 {
			return p.Failf(1, "Permission denied")
		}
		return c(ctx, p)
	}
}

func dateProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "ud:r:RI", map[string]byte{"utc": 'u', "date": 'd', "iso-8601": 'I', "reference": 'r'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	when, err := parseDate(f.value('d', "now"), p.now())
	if err != nil {
		return p.Fail(err)
	}
	format := "%a %b %e %H:%M:%S UTC %Y"
	switch {
	case f.has('R'):
		format = "%a, %d %b %Y %H:%M:%S %z"
	case f.has('I'):
		format = "%F"
	}
	for _, a := range f.args {
		if !strings.HasPrefix(a, "+") {
			return p.Failf(1, "cannot set date: Operation not permitted")
		}
		format = a[1:]
	}
	p.Printf("%s\n", strftime(format, when.UTC()))
	return 0
}

func unameProgram(_ context.Context, p *Process) int {
	f, err := parseFlags(p.Args[1:], "asnrvmpio", map[string]byte{"all": 'a', "kernel-release": 'r', "machine": 'm', "nodename": 'n'}, false)
	if err != nil {
		return p.Failf(1, "%v", err)
	}
	var out []string
	for _, part := range []struct {
		flag byte
		text string
	}{{'s', "Linux"}, {'n', p.sh.s.hostname()}, {'r', vfs.KernelRelease}, {'v', "#1 SMP simulated"}, {'m', "x86_64"}, {'o', "GNU/Linux"}} {
		if f.has(part.flag) || f.has('a') || len(f.set) == 0 && part.flag == 's' {
			out = append(out, part.text)
		}
	}
	p.Printf("%s\n", strings.Join(out, " "))
	return 0
}

func (p *Process) booted() time.Time {
	if s := p.sh.s.o.System; s != nil {
		return s.Booted()
	}
	return p.sh.started
}

func uptimeProgram(_ context.Context, p *Process) int {
	up := p.now().Sub(p.booted())
	if slices.Contains(p.Args, "-s") {
		p.Printf("%s\n", p.booted().UTC().Format("2006-01-02 15:04:05"))
		return 0
	}
	if slices.Contains(p.Args, "-p") {
		p.Printf("up %d hours, %d minutes\n", int(up.Hours()), int(up.Minutes())%60)
		return 0
	}
	p.Printf(" %s up %d days, %2d:%02d,  1 user,  load average: 0.00, 0.00, 0.00\n", p.now().UTC().Format("15:04:05"), int(up.Hours())/24, int(up.Hours())%24, int(up.Minutes())%60)
	return 0
}

func hostnameProgram(_ context.Context, p *Process) int {
	for _, a := range p.Args[1:] {
		switch a {
		case "-I", "-i", "--all-ip-addresses":
			for _, addr := range p.addresses() {
				p.Printf("%s ", addr.Addr())
			}
			p.Printf("\n")
			return 0
		case "-f", "-s", "--fqdn", "--short":
		default:
			return setHostname(p, a)
		}
	}
	p.Printf("%s\n", p.sh.s.hostname())
	return 0
}

func setHostname(p *Process, name string) int {
	if p.User.UID != 0 {
		return p.Failf(1, "you must be root to change the host name")
	}
	if p.sh.s.o.System == nil {
		return p.Failf(1, "the host name cannot be changed here")
	}
	if err := p.sh.s.o.System.SetHostname(name); err != nil {
		return p.Fail(err)
	}
	return 0
}

func psProgram(_ context.Context, p *Process) int {
	all := len(p.Args) > 1 && strings.ContainsAny(p.Args[1], "eaAx")
	full := len(p.Args) > 1 && strings.ContainsAny(p.Args[1], "fu")
	rows := []ProcessInfo{{PID: 1, User: "root", Started: p.booted(), Command: "/sbin/init"}}
	if s := p.sh.s.o.System; s != nil {
		if known := s.Processes(); len(known) > 0 {
			rows = known
		}
	}
	if !all {
		rows = nil
	}
	rows = append(rows, ProcessInfo{PID: int(p.sh.mainPID), PPID: 1, User: p.User.Name, Started: p.sh.started, Command: "bash"},
		ProcessInfo{PID: int(p.sh.r.pids.Add(1)), PPID: int(p.sh.mainPID), User: p.User.Name, Started: p.now(), Command: strings.Join(p.Args, " ")})
	if full {
		p.Printf("%-10s %7s %7s %-5s %s\n", "UID", "PID", "PPID", "STIME", "CMD")
	} else {
		p.Printf("%7s %-8s %8s %s\n", "PID", "TTY", "TIME", "CMD")
	}
	for _, r := range rows {
		if full {
			p.Printf("%-10s %7d %7d %-5s %s\n", r.User, r.PID, r.PPID, r.Started.UTC().Format("15:04"), r.Command)
		} else {
			p.Printf("%7d %-8s %8s %s\n", r.PID, "?", "00:00:00", r.Command)
		}
	}
	return 0
}

func mountProgram(_ context.Context, p *Process) int {
	if len(p.Args) == 1 && p.name() == "mount" {
		text, err := p.readFile("/proc/mounts")
		if err != nil {
			return p.Fail(err)
		}
		for _, line := range splitLines(text) {
			if w := strings.Fields(line); len(w) > 3 {
				p.Printf("%s on %s type %s (%s)\n", w[0], w[1], w[2], w[3])
			}
		}
		return 0
	}
	return p.Failf(32, "permission denied: nothing can be mounted on a simulated machine")
}

func powerProgram(_ context.Context, p *Process) int {
	action := PowerOff
	if p.name() == "reboot" || slices.Contains(p.Args, "-r") {
		action = Reboot
	}
	if slices.Contains(p.Args, "-c") {
		return 0
	}
	return p.power(action)
}

func (p *Process) power(action PowerAction) int {
	switch {
	case p.User.UID != 0:
		return p.Failf(1, "Operation not permitted: only root may do this")
	case p.sh.s.o.System == nil:
		return p.Failf(1, "this machine cannot be turned off from here")
	}
	if err := p.sh.s.o.System.Power(action); err != nil {
		return p.Fail(err)
	}
	return 0
}
