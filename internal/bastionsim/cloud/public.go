package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/sshd"
	"github.com/gardenlite/gardenlite/internal/bastionspec"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garbage"
)

const (
	// MaxPublic is how many instances with a public address there may be.
	MaxPublic = 1000
	// bindRetry is the time between attempts to listen on an address that another program on the host uses.
	bindRetry = time.Second
)

// PublicSpec makes an instance a bastion: it gets a public address, on which its SSH server admits clients that Ingress
// allows. A bastion accepts no connections in its network, and its units cannot run Programs, which are not behind its
// firewall.
type PublicSpec struct {
	// Ingress is the firewall. UpdateIngress changes it.
	Ingress bastionspec.Ingress `json:"ingress,omitempty"`
	// Forward are the tags of the instances in the same network that the SSH server forwards to, on port 22 of their
	// addresses. It never forwards to bastions, and to no instance at all if there are no tags.
	Forward map[string]string `json:"forward,omitempty"`
}

// check returns an error if the spec is invalid. A nil spec is valid.
func (s *PublicSpec) check() error {
	if s == nil {
		return nil
	}
	if len(s.Forward) > MaxTags {
		return fmt.Errorf("it forwards by %d tags, more than the %d that there may be", len(s.Forward), MaxTags)
	}
	return s.Ingress.Check()
}

// exposure is the state that bastions have in addition to other instances.
type exposure struct {
	address netip.AddrPort
	forward map[string]string
	ingress atomic.Pointer[bastionspec.Ingress]
	// listener is the listener that EnsureInstance opened, until the instance takes it. Guarded by Cloud.mu.
	listener net.Listener
}

// expose listens on a free public address for a new instance. The lock is held.
func (c *Cloud) expose(r *record) (net.Listener, error) {
	var given []netip.AddrPort
	for _, i := range c.instances {
		if i.public != nil {
			given = append(given, i.public.address)
		}
	}
	if len(given) >= MaxPublic {
		return nil, fmt.Errorf("%w: there are %d bastions already", ErrExhausted, MaxPublic)
	}
	l, address, err := c.cfg.Public.New(c.ctx, func(a netip.AddrPort) bool {
		return slices.ContainsFunc(given, func(g netip.AddrPort) bool {
			return g == a || c.cfg.Public.IsOwn(a) && g.Addr() == a.Addr()
		})
	})
	if err != nil {
		return nil, err
	}
	r.PublicAddress = address
	return l, nil
}

// bind returns the listener on an instance's public address, or on another one if another program on the host uses that. While it can
// listen on none, bind says so in the instance's message and tries again.
func (c *Cloud) bind(ctx context.Context, i *instance) (net.Listener, error) {
	c.mu.Lock()
	l := i.public.listener
	i.public.listener = nil
	c.mu.Unlock()
	for said := ""; l == nil; {
		var err error
		if l, err = c.cfg.Public.Open(ctx, i.public.address); errors.Is(err, syscall.EADDRINUSE) {
			l, err = c.move(i)
		}
		if err == nil {
			break
		}
		if said != err.Error() {
			said = err.Error()
			c.cfg.Log.Error(err, "a bastion cannot be reached: free its public address; it is tried again all the time", "instance", i.spec.ID)
		}
		c.mu.Lock()
		i.message = said
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.cfg.Clock.After(bindRetry):
		}
	}
	return l, nil
}

// move gives a bastion another public address, and listens there.
func (c *Cloud) move(i *instance) (net.Listener, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.readRecord(i.spec.ID)
	if err != nil {
		return nil, err
	}
	l, err := c.expose(&r)
	if err != nil {
		return nil, err
	}
	if err := c.saveRecord(r); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	i.public.address, i.message = r.PublicAddress, ""
	return l, nil
}

// saveRecord replaces the record of an instance.
func (c *Cloud) saveRecord(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return fsutil.WriteKept(c.cfg.Keeper, c.recordFile(r.ID), data, 0o600)
}

// unbind closes the listener if the instance has not taken it.
func (c *Cloud) unbind(i *instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i.public != nil && i.public.listener != nil {
		_ = i.public.listener.Close()
		i.public.listener = nil
	}
}

// guard turns a machine's configuration into that of a bastion.
func (c *Cloud) guard(i *instance, cfg *machine.Config) {
	cfg.Programs = nil
	cfg.Admit = func(remote net.Addr) bool { return i.public.ingress.Load().Allows(remote) }
	cfg.Forward = func(ctx context.Context, host string, port uint32) (net.Conn, error) {
		to, err := netip.ParseAddr(host)
		if err != nil || port != SSHPort {
			return nil, errOnlyNodes
		}
		conn, err := c.dial(ctx, i.spec.Network, i.address, netip.AddrPortFrom(to, SSHPort), func(target *instance) error {
			if target == nil || target.public != nil || !hasTags(target, i.public.forward) {
				return errOnlyNodes // the same error whether or not an instance has the address
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: conn.(*memnet.Conn), traffic: c.traffic}, nil
	}
}

var errOnlyNodes = fmt.Errorf("%w: this bastion leads to port %d of the nodes of its network and nowhere else; name "+
	"the node by its address", sshd.ErrProhibited, SSHPort)

// hasTags reports whether an instance has all of the tags. No instance has an empty set of tags.
func hasTags(i *instance, tags map[string]string) bool {
	return len(tags) > 0 && labels.SelectorFromSet(tags).Matches(labels.Set(i.spec.Tags))
}

const (
	// muchTraffic is how many bytes within shortTime are much traffic. The buffers that they pass through become
	// garbage.
	muchTraffic = 8 << 20
	shortTime   = time.Second
)

// traffic makes garbage collection rarer while the bastions forward much data.
type traffic struct {
	clock      clock.PassiveClock
	reportLoad func()

	mu    sync.Mutex
	bytes int // forwarded since then
	since time.Time
}

func newTraffic(clock clock.PassiveClock) *traffic {
	return &traffic{clock: clock, reportLoad: func() { garbage.ReportLoad(0) }, since: clock.Now()}
}

func (t *traffic) count(bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes += bytes; t.bytes < muchTraffic {
		return
	}
	now := t.clock.Now()
	if now.Sub(t.since) < shortTime {
		t.reportLoad()
	}
	t.bytes, t.since = 0, now
}

// countedConn counts the bytes of a connection through a bastion.
type countedConn struct {
	*memnet.Conn
	traffic *traffic
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.traffic.count(n)
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.count(n)
	return n, err
}

// UpdateIngress replaces the firewall rules of a bastion. It takes effect at once: connections of clients that are not
// allowed any more are cut before it returns.
func (c *Cloud) UpdateIngress(_ context.Context, id string, rules bastionspec.Ingress) error {
	if err := rules.Check(); err != nil {
		return fmt.Errorf("changing the ingress of instance %s: %w", id, err)
	}
	m, err := c.setIngress(id, rules)
	if m != nil {
		m.DisconnectSSH()
	}
	if err != nil {
		return fmt.Errorf("changing the ingress of instance %s: %w", id, err)
	}
	return nil
}

// setIngress applies and stores new rules. It returns the machine if it runs.
func (c *Cloud) setIngress(id string, rules bastionspec.Ingress) (*machine.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.instances[id]
	switch {
	case i == nil:
		return nil, ErrNotFound
	case i.public == nil:
		return nil, fmt.Errorf("it is no bastion")
	case i.deleting:
		return nil, ErrDeleting
	}
	i.public.ingress.Store(&rules)
	r, err := c.readRecord(id)
	if err != nil {
		return i.machine, err
	}
	if reflect.DeepEqual(r.Public.Ingress, rules) {
		return i.machine, nil
	}
	r.Public.Ingress = rules
	return i.machine, c.saveRecord(r)
}

// Ready returns a channel that is closed when the instance has booted and, if it is a bastion, can be reached, or when
// it has ended. It returns nil if there is no such instance, or if the instance was powered off before Open.
func (c *Cloud) Ready(id string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.instances[id]; i != nil {
		return i.ready
	}
	return nil
}
