package public

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
)

// host returns a Listen that fails with the error that answer returns for an address.
func host(answer func(address netip.AddrPort) error) func(context.Context, string, string) (net.Listener, error) {
	return func(_ context.Context, _, address string) (net.Listener, error) {
		if err := answer(netip.MustParseAddrPort(address)); err != nil {
			return nil, fmt.Errorf("listen tcp4 %s: bind: %w", address, err)
		}
		return nil, nil
	}
}

func TestNew(t *testing.T) {
	none := func(netip.AddrPort) bool { return false }
	for name, test := range map[string]struct {
		answer func(netip.AddrPort) error
		taken  func(netip.AddrPort) bool
		shared bool
		port   uint16
		fails  string
	}{
		"all is possible": {answer: func(netip.AddrPort) error { return nil }, port: 22},
		"not root": {answer: func(a netip.AddrPort) error {
			if a.Port() < 1024 {
				return syscall.EACCES
			}
			return nil
		}, port: 2222},
		"the host has an SSH server": {answer: func(a netip.AddrPort) error {
			if a.Port() == 22 {
				return syscall.EADDRINUSE
			}
			return nil
		}, port: 2222},
		"127.0.0.1 alone": {answer: func(a netip.AddrPort) error {
			if a.Addr() != loopback {
				return syscall.EADDRNOTAVAIL
			}
			return nil
		}, shared: true},
		"full":       {answer: func(netip.AddrPort) error { return syscall.EADDRINUSE }, fails: "in use"},
		"given away": {answer: func(netip.AddrPort) error { return nil }, taken: func(netip.AddrPort) bool { return true }, fails: "given away"},
		"broken":     {answer: func(netip.AddrPort) error { return syscall.EMFILE }, fails: "too many open files"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.taken == nil {
				test.taken = none
			}
			_, got, err := Addresses{Listen: host(test.answer)}.New(t.Context(), test.taken)
			switch {
			case test.fails != "":
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%v, want %q", err, test.fails)
				}
			case err != nil:
				t.Error(err)
			case test.shared:
				if got.Addr() != loopback || got.Port() < firstPort || got.Port() >= firstPort+countPorts {
					t.Errorf("%s", got)
				}
			case !DefaultRange.Contains(got.Addr()) || got.Port() != test.port:
				t.Errorf("%s, want port %d", got, test.port)
			}
		})
	}
}

// Nothing but the loopback is ever listened on.
func TestLoopbackOnly(t *testing.T) {
	listen := host(func(a netip.AddrPort) error { t.Errorf("listens on %s", a); return nil })
	for _, cidr := range []string{"0.0.0.0/8", "10.0.0.0/8", "126.0.0.0/7", "::1/128", "127.0.0.1/32"} {
		if _, _, err := (Addresses{Range: netip.MustParsePrefix(cidr), Listen: listen}).New(
			t.Context(), func(netip.AddrPort) bool { return false }); err == nil {
			t.Errorf("%s is a range", cidr)
		}
	}
	for _, address := range []string{"0.0.0.0:22", "10.0.0.1:22", "127.0.0.1:0", "[::]:22"} {
		if _, err := (Addresses{Listen: listen}).Open(t.Context(), netip.MustParseAddrPort(address)); err == nil {
			t.Errorf("%s is listened on", address)
		}
	}
}
