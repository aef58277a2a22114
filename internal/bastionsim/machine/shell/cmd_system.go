package shell

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// exitStatus returns a program that only ends with a status.
func exitStatus(status int) func(*Process, flags) int {
	return func(*Process, flags) int { return status }
}

func syncProgram(p *Process, _ flags) int {
	if err := p.fs.FS().Sync(); err != nil {
		return p.Failf(1, "%v", err)
	}
	return 0
}

// refused returns a program that cannot work here. It ends like the real one, for example without a network.
func refused(status int, reason string) func(*Process, flags) int {
	return func(p *Process, _ flags) int { return p.Failf(status, "%s", reason) }
}

const (
	noNetwork   = "Network is unreachable: sessions on this simulated machine have no network"
	noPasswords = "passwords are refused on this machine: log in with a key"
)

func rootOnly(run func(*Process, flags) int) func(*Process, flags) int {
	return func(p *Process, f flags) int {
		if p.user.UID != 0 {
			return p.Failf(1, "Permission denied: only root may do this")
		}
		return run(p, f)
	}
}

// layouts maps the letters of date to Go's time layouts.
var layouts = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'B': "January", 'b': "Jan",
	'h': "Jan", 'A': "Monday", 'a': "Mon", 'Z': "MST", 'z': "-0700", 'p': "PM", 'I': "03", 'F': "2006-01-02",
	'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'e': "_2", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06",
	'X': "15:04:05", 'j': "002", 'n': "\n", 't': "\t", '%': "%",
}

// strftime formats a time by a format of date(1).
func strftime(format string, t time.Time) string {
	pairs := []string{"%s", strconv.FormatInt(t.Unix(), 10), "%N", fmt.Sprintf("%09d", t.Nanosecond())}
	for letter, layout := range layouts {
		pairs = append(pairs, "%"+string(letter), t.Format(layout))
	}
	return strings.NewReplacer(pairs...).Replace(format)
}

// parseDate parses the dates of "date -d", "touch -d" and "touch -t".
func parseDate(text string, now time.Time) (time.Time, error) {
	if n, ok := strings.CutPrefix(text, "@"); ok {
		s, err := strconv.ParseInt(n, 10, 64)
		return time.Unix(s, 0), err
	}
	if text == "now" {
		return now, nil
	}
	for _, layout := range []string{
		time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly, "200601021504.05", "200601021504",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return now, fmt.Errorf("invalid date '%s'", text)
}

func dateProgram(p *Process, f flags) int {
	when, err := parseDate(f.value('d', "now"), p.s.o.Clock.Now())
	if err != nil {
		return p.Fail(err)
	}
	format := "%a %b %e %H:%M:%S UTC %Y"
	switch {
	case len(f.args) > 0 && !strings.HasPrefix(f.args[0], "+"):
		return p.Failf(1, "cannot set date: Operation not permitted")
	case len(f.args) > 0:
		format = f.args[0][1:]
	}
	p.Printf("%s\n", strftime(format, when.UTC()))
	return 0
}

func unameProgram(p *Process, f flags) int {
	var out []string
	for _, part := range []struct {
		flag byte
		text string
	}{
		{'s', "Linux"}, {'n', p.s.o.System.Hostname()}, {'r', vfs.KernelRelease}, {'m', "x86_64"},
	} {
		if f.has(part.flag) || f.has('a') || len(f.set) == 0 && part.flag == 's' {
			out = append(out, part.text)
		}
	}
	p.Printf("%s\n", strings.Join(out, " "))
	return 0
}

func uptimeProgram(p *Process, f flags) int {
	up := p.s.o.Clock.Now().Sub(p.s.o.System.Booted())
	hours, minutes := int(up.Hours()), int(up.Minutes())%60
	p.Printf(" %s up %d days, %2d:%02d,  1 user,  load average: 0.00, 0.00, 0.00\n",
		p.s.o.Clock.Now().UTC().Format(time.TimeOnly), hours/24, hours%24, minutes)
	return 0
}

func hostnameProgram(p *Process, f flags) int {
	names := []string{p.s.o.System.Hostname()}
	if f.has('I') {
		names = nil
		for _, addr := range p.s.o.System.Addresses() {
			names = append(names, addr.Addr().String())
		}
	}
	if len(f.args) > 0 {
		return p.Failf(1, "the host name cannot be changed")
	}
	p.Printf("%s\n", strings.Join(names, " "))
	return 0
}

// psProgram lists all processes, with the columns of -f.
func psProgram(p *Process, _ flags) int {
	shell, user := int(p.mainPID), p.user.Name
	rows := append(p.s.o.System.Processes(), ProcessInfo{shell, 1, user, p.started, "bash"},
		ProcessInfo{int(p.r.pids.Add(1)), shell, user, p.s.o.Clock.Now(), strings.Join(p.Args, " ")})
	p.Printf("%-10s %7s %7s %-5s %s\n", "UID", "PID", "PPID", "STIME", "CMD")
	for _, r := range rows {
		p.Printf("%-10s %7d %7d %s %s\n", r.User, r.PID, r.PPID, r.Started.UTC().Format("15:04"), r.Command)
	}
	return 0
}

// powerProgram implements reboot, poweroff and shutdown.
func powerProgram(p *Process, f flags) int {
	if slices.Contains(f.args, "-c") { // no shutdown is scheduled
		return 0
	}
	if p.name() == "reboot" || slices.Contains(f.args, "-r") {
		return p.power(Reboot)
	}
	return p.power(PowerOff)
}

func (p *Process) power(action PowerAction) int {
	if p.user.UID != 0 {
		return p.Failf(1, "Operation not permitted: only root may do this")
	}
	return p.done(p.s.o.System.Power(action))
}

const links = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n" +
	"    inet 127.0.0.1/8 scope host lo\n" +
	"2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq state UP\n"

func ipProgram(p *Process, f flags) int {
	object := "address"
	if i := slices.IndexFunc(f.args, func(a string) bool { return !strings.HasPrefix(a, "-") }); i >= 0 {
		object = f.args[i]
	}
	if !strings.HasPrefix("address", object) && !strings.HasPrefix("link", object) {
		return p.Failf(1, "Object \"%s\" is unknown on this machine, try addr or link.", object)
	}
	p.Printf("%s", links)
	for _, a := range p.s.o.System.Addresses() {
		family := "inet"
		if a.Addr().Is6() {
			family = "inet6"
		}
		p.Printf("    %s %s scope global eth0\n", family, a)
	}
	return 0
}

const containerdDefault = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\n" +
	"  SystemdCgroup = false\n"

// containerdProgram prints its default configuration, which user data asks for, or runs until it is stopped: a
// simulated machine has no containers.
func containerdProgram(p *Process, f flags) int {
	if slices.Equal(f.args, []string{"config", "default"}) {
		return p.done(p.write(containerdDefault))
	}
	return boolStatus(p.sleep(math.MaxInt64) == nil)
}
