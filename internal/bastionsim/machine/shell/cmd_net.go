package shell

import (
	"context"
	"net/netip"
	"slices"
	"strings"
)

// noNetwork is a program that would need one: it says that there is none, and ends as the real one does without a route.
func noNetwork(status int, message string) Command {
	return func(_ context.Context, p *Process) int {
		if slices.Contains(p.Args, "--version") || slices.Contains(p.Args, "-V") {
			p.Printf("%s (simulated)\n", p.name())
			return 0
		}
		return p.Failf(status, "%s: sessions on this simulated machine have no network", message)
	}
}

var netCommands = map[string]Command{
	"curl": noNetwork(7, "(7) Failed to connect"), "wget": noNetwork(4, "failed: Network is unreachable"),
	"nc":   noNetwork(1, "connect failed"),
	"ping": noNetwork(2, "connect: Network is unreachable"), "ssh": noNetwork(255, "connect to host: Network is unreachable"),
	"scp": scpProgram, "sftp": noNetwork(255, "connect to host: Network is unreachable"),

	"ip": ipProgram, "iptables": rootOnly(nothingProgram),
}

func (p *Process) addresses() []netip.Prefix {
	if p.sh.s.o.System == nil {
		return nil
	}
	return p.sh.s.o.System.Addresses()
}

func ipProgram(_ context.Context, p *Process) int {
	object := "addr"
	for _, a := range p.Args[1:] {
		if !strings.HasPrefix(a, "-") {
			object = a
			break
		}
	}
	addresses := p.addresses()
	switch {
	case strings.HasPrefix("route", object) || p.name() == "route":
		for _, a := range addresses {
			p.Printf("%s dev eth0 proto kernel scope link src %s\n", a.Masked(), a.Addr())
		}
	case strings.HasPrefix("address", object), strings.HasPrefix("link", object):
		p.Printf("1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n    inet 127.0.0.1/8 scope host lo\n2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq state UP\n")
		for _, a := range addresses {
			family := "inet"
			if a.Addr().Is6() {
				family = "inet6"
			}
			p.Printf("    %s %s scope global eth0\n", family, a)
		}
	default:
		return p.Failf(1, "Object \"%s\" is unknown on this machine, try addr, link or route.", object)
	}
	return 0
}
