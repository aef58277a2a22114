package commands

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/users"
)

// host are the commands that show the machine.
type host struct{ System }

// Kernel is what uname says.
const Kernel = "6.6.0-gardenlite"

func systemCommands(system System) map[string]shell.Command {
	h := host{system}
	return map[string]shell.Command{
		"hostname": h.hostname, "hostnamectl": h.hostname, "uname": h.uname, "date": date, "uptime": h.uptime, "ps": h.ps, "free": free,
		"nproc": say("2"), "systemctl": h.systemctl, "journalctl": h.journalctl, "ip": h.ip, "ifconfig": h.ip, "ss": h.ss, "netstat": h.ss,
		"kubelet": h.kubelet, "curl": refuse, "wget": refuse, "ping": refuse, "nc": refuse, "ssh": refuse, "scp": refuse, "dig": refuse,
		"nslookup": refuse, "apt-get": refuse, "apt": refuse, "reboot": refusePower, "shutdown": refusePower, "poweroff": refusePower,
		"dmesg": say(""), "mount": say("/dev/vda1 on / type vfs (rw)"), "sysctl": say(""), "modprobe": say(""), "lsb_release": say("Garden Linux (gardenlite)"),
	}
}

func say(text string) shell.Command {
	return func(in *invocation) int {
		if text != "" {
			fmt.Fprintln(in.Stdout, text)
		}
		return 0
	}
}

// refuse is for what would need a network: a machine has only the one that its shoot's firewall rules allow, and no client.
func refuse(in *invocation) int {
	fail(in, "this machine has no way out: connection refused")
	return 7
}

func refusePower(in *invocation) int {
	return fail(in, "machines are started and stopped by their Machine object only")
}

func (h host) hostname(in *invocation) int {
	fmt.Fprintln(in.Stdout, h.Hostname())
	return 0
}

func (h host) uname(in *invocation) int {
	f := parse(in.Args, "")
	values := []struct{ flag, value string }{{"s", "Linux"}, {"n", h.Hostname()}, {"r", Kernel}, {"v", "#1 SMP"}, {"m", "x86_64"}, {"o", "GNU/Linux"}}
	var out []string
	for _, v := range values {
		if f.has("a", v.flag) || len(f.set) == 0 && v.flag == "s" {
			out = append(out, v.value)
		}
	}
	fmt.Fprintln(in.Stdout, strings.Join(out, " "))
	return 0
}

var dateVerbs = map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'F': "2006-01-02", 'T': "15:04:05",
	'y': "06", 'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'Z': "MST", 'z': "-0700", 'e': "_2", 'j': "002", 'N': "000000000", 'R': "15:04", 'I': "03", 'p': "PM", 'D': "01/02/06"}

func date(in *invocation) int {
	f := parse(in.Args, "d date r")
	now := in.Clock.Now().UTC()
	if d := f.get("d", "date"); d != "" {
		var seconds int64
		if _, err := fmt.Sscanf(d, "@%d", &seconds); err == nil {
			now = time.Unix(seconds, 0).UTC()
		} else if t, err := time.Parse(time.RFC3339, d); err == nil {
			now = t.UTC()
		} else if d != "now" {
			return fail(in, "invalid date '%s'", d)
		}
	}
	layout := "Mon Jan _2 15:04:05 UTC 2006"
	if f.has("I", "iso-8601", "Iseconds") {
		layout = "2006-01-02"
	}
	for _, a := range f.args {
		format, ok := strings.CutPrefix(a, "+")
		if !ok {
			return fail(in, "cannot set date")
		}
		var b strings.Builder
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			i++
			switch l, known := dateVerbs[format[i]]; {
			case format[i] == 's':
				fmt.Fprint(&b, now.Unix())
			case format[i] == 'N':
				fmt.Fprintf(&b, "%09d", now.Nanosecond())
			case known:
				b.WriteString(now.Format(l))
			default:
				b.WriteByte(format[i])
			}
		}
		fmt.Fprintln(in.Stdout, b.String())
		return 0
	}
	fmt.Fprintln(in.Stdout, now.Format(layout))
	return 0
}

func (h host) uptime(in *invocation) int {
	up := in.Clock.Since(h.Boot())
	fmt.Fprintf(in.Stdout, " %s up %d days, %2d:%02d,  1 user,  load average: 0.00, 0.00, 0.00\n",
		in.Clock.Now().UTC().Format("15:04:05"), int(up.Hours())/24, int(up.Hours())%24, int(up.Minutes())%60)
	return 0
}

func (h host) ps(in *invocation) int {
	fmt.Fprintln(in.Stdout, "    PID USER     COMMAND")
	fmt.Fprintln(in.Stdout, "      1 root     /usr/lib/systemd/systemd")
	pid := 100
	for _, u := range h.Units() {
		if u.Active == "active" && u.Sub == "running" {
			fmt.Fprintf(in.Stdout, "%7d root     %s\n", pid, strings.TrimSuffix(u.Name, ".service"))
			pid++
		}
	}
	fmt.Fprintf(in.Stdout, "%7d %-8s %s\n", in.PID, users.NameOf(in.FS, in.Cred.UID), strings.Join(in.Args, " "))
	return 0
}

func free(in *invocation) int {
	fmt.Fprintln(in.Stdout, "               total        used        free      shared  buff/cache   available\n"+
		"Mem:         4194304      524288     3145728           0      524288     3670016\nSwap:              0           0           0")
	return 0
}

func (h host) kubelet(in *invocation) int {
	if h.KubeletVersion() == "" {
		fail(in, "command not found")
		return 127
	}
	if !parse(in.Args, "").has("version") {
		return fail(in, "the kubelet of a simulated machine runs in its landscape; only --version is here")
	}
	fmt.Fprintln(in.Stdout, "Kubernetes "+h.KubeletVersion())
	return 0
}

func (h host) ip(in *invocation) int {
	fmt.Fprintln(in.Stdout, "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536\n    inet 127.0.0.1/8 scope host lo\n2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500")
	for _, a := range h.Addresses() {
		family := "inet"
		if p, err := netip.ParsePrefix(a); err == nil && p.Addr().Is6() {
			family = "inet6"
		}
		fmt.Fprintf(in.Stdout, "    %s %s scope global eth0\n", family, a)
	}
	return 0
}

func (h host) ss(in *invocation) int {
	fmt.Fprintln(in.Stdout, "State   Recv-Q  Send-Q  Local Address:Port  Peer Address:Port")
	for _, u := range h.Units() {
		if (u.Name == "ssh.service" || u.Name == "sshd.service") && u.Active == "active" {
			fmt.Fprintln(in.Stdout, "LISTEN  0       128           0.0.0.0:22         0.0.0.0:*")
			break
		}
	}
	return 0
}

func (h host) unit(name string) (Unit, bool) {
	for _, u := range h.Units() {
		if u.Name == name || u.Name == name+".service" {
			return u, true
		}
	}
	return Unit{}, false
}

func (h host) systemctl(in *invocation) int {
	f := parse(in.Args, "t type state n lines o output")
	verb := "list-units"
	if len(f.args) > 0 {
		verb, f.args = f.args[0], f.args[1:]
	}
	switch verb {
	case "list-units", "list-unit-files":
		for _, u := range h.Units() {
			fmt.Fprintf(in.Stdout, "%-40s %-8s %-8s %-8s %s\n", u.Name, u.Load, u.Active, u.Sub, u.Description)
		}
		return 0
	case "is-system-running":
		return say("running")(in)
	case "daemon-reload":
		f.args = []string{""}
	}
	status := 0
	for _, name := range f.args {
		status = max(status, h.control(in, f, verb, name))
	}
	return status
}

func (h host) control(in *invocation, f flags, verb, name string) int {
	u, known := h.unit(name)
	switch verb {
	case "is-active":
		if !known {
			u.Active = "inactive"
		}
		if !f.has("q", "quiet") {
			fmt.Fprintln(in.Stdout, u.Active)
		}
		return 3 * bool2int(u.Active != "active")
	case "is-enabled":
		text := "disabled"
		if u.Enabled {
			text = "enabled"
		}
		if !f.has("q", "quiet") {
			fmt.Fprintln(in.Stdout, text)
		}
		return bool2int(!u.Enabled)
	case "is-failed":
		fmt.Fprintln(in.Stdout, u.Active)
		return bool2int(u.Active != "failed")
	case "status", "show", "cat":
		return h.show(in, verb, name, u, known)
	}
	if in.Cred.UID != 0 {
		return fail(in, "%s %s: Access denied", verb, name)
	}
	// enable --now also starts.
	verbs := []string{verb}
	if f.has("now") {
		verbs = append(verbs, map[string]string{"enable": "start", "disable": "stop", "mask": "stop"}[verb])
	}
	for _, v := range verbs {
		if err := h.Control(v, name); err != nil {
			fail(in, "%v", err)
			return 5
		}
	}
	return 0
}

func (h host) show(in *invocation, verb, name string, u Unit, known bool) int {
	if !known {
		fmt.Fprintf(in.Stderr, "Unit %s could not be found.\n", name)
		return 4
	}
	if verb == "cat" {
		data, err := in.FS.ReadFile("/etc/systemd/system/" + u.Name)
		if err != nil {
			return fail(in, "no files found for %s", u.Name)
		}
		fmt.Fprintf(in.Stdout, "# /etc/systemd/system/%s\n%s", u.Name, data)
		return 0
	}
	fmt.Fprintf(in.Stdout, "● %s - %s\n     Loaded: %s (/etc/systemd/system/%s)\n     Active: %s (%s) since %s\n\n",
		u.Name, u.Description, u.Load, u.Name, u.Active, u.Sub, u.Since.UTC().Format("Mon 2006-01-02 15:04:05 UTC"))
	lines := h.Journal(u.Name)
	for _, l := range lines[max(0, len(lines)-10):] {
		fmt.Fprintln(in.Stdout, l)
	}
	return 3 * bool2int(u.Active != "active")
}

func (h host) journalctl(in *invocation) int {
	f := parse(in.Args, "u n unit lines S since o")
	name := f.get("u", "unit")
	if u, ok := h.unit(name); ok {
		name = u.Name
	}
	lines := h.Journal(name)
	if n := f.get("n", "lines"); n != "" {
		k := len(lines)
		fmt.Sscan(n, &k)
		lines = lines[max(0, len(lines)-max(k, 0)):]
	}
	if len(lines) == 0 {
		fmt.Fprintln(in.Stdout, "-- No entries --")
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(in.Stdout, l); err != nil {
			return 1
		}
	}
	return 0
}
