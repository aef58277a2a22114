package sshclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// maxForwarded is how many connections a forward has at a time.
const maxForwarded = 64

// Forward is a local port that leads to a remote one, as with ssh -L.
type Forward struct{ Listen, Target string }

// ParseForward reads [ADDRESS:]PORT:HOST:HOSTPORT. Addresses with colons are in brackets.
func ParseForward(text string) (Forward, error) {
	wrong := func(why string) (Forward, error) {
		return Forward{}, fmt.Errorf("-L %q: %s; it is [ADDRESS:]PORT:HOST:HOSTPORT", text, why)
	}
	fields := forwardFields.FindStringSubmatch(text)
	if fields == nil {
		return wrong("it has not three or four parts")
	}
	listen, target := strings.Trim(cmp.Or(fields[1], "localhost"), "[]"), strings.Trim(fields[3], "[]")
	if listen == "localhost" {
		listen = "127.0.0.1"
	}
	if address, err := netip.ParseAddr(listen); err != nil || !address.IsLoopback() {
		return wrong("it listens on loopback addresses only")
	}
	if target == "" {
		return wrong("it has no host")
	}
	for i, least := range map[int]uint64{2: 0, 4: 1} {
		if port, err := strconv.ParseUint(fields[i], 10, 16); err != nil || port < least {
			return wrong(fmt.Sprintf("%q is no port", fields[i]))
		}
	}
	return Forward{Listen: net.JoinHostPort(listen, fields[2]), Target: net.JoinHostPort(target, fields[4])}, nil
}

// forwardFields has the parts of a forward: colons separate them, and may be within brackets.
var forwardFields = regexp.MustCompile(`^(?:(\[[^]]*\]|[^:[][^:]*):)?([^:]*):(\[[^]]*\]|[^:[][^:]*|):([^:]*)$`)

// Forward listens, and forwards connections until the context ends or stop is called, which waits for them. Targets on
// port 22 are reached from the bastion, all others from the node. It calls report for connections that cannot be
// forwarded.
func (t *Tunnel) Forward(ctx context.Context, f Forward, report func(error)) (address net.Addr, stop func(), err error) {
	config := net.ListenConfig{}
	l, err := config.Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("listening for -L: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	limit := make(chan struct{}, maxForwarded)
	closing := context.AfterFunc(ctx, func() { _ = l.Close() })
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case limit <- struct{}{}:
			case <-ctx.Done():
				return
			}
			conn, err := l.Accept()
			if err != nil {
				if ctx.Err() == nil {
					report(fmt.Errorf("listening on %s: %w", f.Listen, err))
				}
				return
			}
			wg.Go(func() {
				defer func() { <-limit }()
				if err := t.pass(ctx, conn, f.Target); err != nil && ctx.Err() == nil {
					report(err)
				}
			})
		}
	})
	return l.Addr(), func() {
		cancel()
		closing()
		_ = l.Close()
		wg.Wait()
	}, nil
}

// pass copies data between a connection and a target, until both directions or the context have ended.
func (t *Tunnel) pass(ctx context.Context, conn net.Conn, target string) error {
	defer conn.Close()
	from, where := t.node, "the node "+t.route.Node.Name
	if _, port, err := net.SplitHostPort(target); err == nil && port == sshPort {
		from, where = t.bastion, "the bastion"
	}
	there, err := from.DialContext(ctx, "tcp", target)
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) && refused.Reason == ssh.Prohibited {
		return fmt.Errorf("-L: %s does not forward to %s", where, target)
	} else if err != nil {
		return fmt.Errorf("-L: connecting from %s to %s: %w", where, target, err)
	}
	defer there.Close()
	closing := context.AfterFunc(ctx, func() {
		_ = conn.Close()
		_ = there.Close()
	})
	defer closing()
	var wg sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{conn: there, there: conn} {
		wg.Go(func() {
			_, _ = io.Copy(to, from)
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			} else {
				_ = to.Close()
			}
		})
	}
	wg.Wait()
	return nil
}
