package shootplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// defaultStarts is how many control planes start at a time. More do not help: to make an API server is work for the
// processor, and the most of it is done for one after the other.
const defaultStarts = 4

// IDPrefix is before the technical ID of every shoot.
const IDPrefix = "shoot--"

// ErrElsewhere says that another seed of the process runs the control plane.
var ErrElsewhere = errors.New("the control plane runs in another seed")

// errStopped says that the host takes no orders any more.
var errStopped = errors.New("the process is being stopped")

// HostConfig says where a Host keeps what. Dir is required.
type HostConfig struct {
	// Dir is the state directory of the landscape: data is kept in data/shoots/<id>, certificates in pki/shoots/<id>.
	Dir string
	// Datastore is controlplane.Config's. Prefix is of each shoot's own, below a shared one.
	Datastore string
	Prefix    func(id string) string
	// DialNode connects to an address and port of a shoot's network, where its Nodes are; nil if they are not reached.
	DialNode func(ctx context.Context, id, address string) (net.Conn, error)
	// ServesPod is controlplane.Config's.
	ServesPod func(apiServer string, at netip.AddrPort) bool
	// AuditLog is the file for a shoot's audit log, "" for none.
	AuditLog func(id string) string
	// Clock is the real one by default.
	Clock clock.WithTicker
	Log   logr.Logger
	// Starts is how many control planes start at a time; 4 if 0.
	Starts int
	// OnChange, if set, is called for every change. It must not call the Host.
	OnChange func(State)
}

// Host has the control planes of a process.
type Host struct {
	cfg   HostConfig
	slots chan struct{}
	ports ports

	mu       sync.Mutex
	planes   map[string]*plane
	watchers map[string]func(id string)
	stopped  bool
}

// NewHost makes a host that runs nothing yet.
func NewHost(cfg HostConfig) *Host {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	if cfg.Starts <= 0 {
		cfg.Starts = defaultStarts
	}
	if cfg.Prefix == nil {
		cfg.Prefix = func(string) string { return "" }
	}
	if cfg.AuditLog == nil {
		cfg.AuditLog = func(string) string { return "" }
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func(State) {}
	}
	h := &Host{cfg: cfg, slots: make(chan struct{}, cfg.Starts), planes: map[string]*plane{}, watchers: map[string]func(string){}}
	h.ports = ports{dir: filepath.Join(cfg.Dir, "data", "shoots"), reserved: map[int]string{}}
	return h
}

func (h *Host) dataDir(id string) string { return filepath.Join(h.cfg.Dir, "data", "shoots", id) }
func (h *Host) pkiDir(id string) string  { return filepath.Join(h.cfg.Dir, "pki", "shoots", id) }

// Put orders a control plane for a seed, and returns at once. Read is asked for the files if the host does not have them.
// ErrElsewhere means that another seed has it still.
func (h *Host) Put(id, owner string, order Order, read func() (map[string][]byte, error)) (State, error) {
	p, err := h.claim(id, owner)
	if err != nil {
		return State{}, err
	}
	last := p.ordered()
	switch {
	case !order.APIServer:
	case last.Files != nil && last.sameServer(order):
		order.Files = last.Files
	default:
		if order.Files, err = read(); err != nil {
			return p.observe(), err
		}
	}
	p.put(order)
	return p.observe(), nil
}

// Remove ends a control plane of a seed, deletes its data if that is asked for, and returns at once, with whether it is
// done. What another seed has is left to that.
func (h *Host) Remove(id, owner string, data bool) (State, bool, error) {
	p, err := h.claim(id, owner)
	if errors.Is(err, ErrElsewhere) {
		return State{ID: id, Phase: Gone}, true, nil
	}
	if err != nil {
		return State{}, false, err
	}
	p.remove(data)
	select {
	case <-p.ended:
		h.remove(p)
		return State{ID: id, Owner: owner, Phase: Gone}, true, nil
	default:
		return p.observe(), false, nil
	}
}

// State is what there is of a control plane.
func (h *Host) State(id string) (State, bool) {
	h.mu.Lock()
	p := h.planes[id]
	h.mu.Unlock()
	if p == nil {
		return State{}, false
	}
	return p.observe(), true
}

// Watch has a seed told of each change of a control plane that it has, until the function that is returned is called.
func (h *Host) Watch(owner string, changed func(id string)) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[owner] = changed
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, owner)
	}
}

// Leave stops all control planes of a seed and waits for them. Their data stays.
func (h *Host) Leave(owner string) {
	h.end(func(p *plane) bool { return p.owner == owner })
}

// Stop stops all control planes, waits for them, and takes no orders any more.
func (h *Host) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.end(func(*plane) bool { return true })
}

func (h *Host) end(which func(*plane) bool) {
	h.mu.Lock()
	var ending []*plane
	for _, p := range h.planes {
		if which(p) {
			ending = append(ending, p)
		}
	}
	h.mu.Unlock()
	for _, p := range ending {
		p.cancel()
	}
	for _, p := range ending {
		<-p.ended
		h.remove(p)
	}
}

// claim is the control plane of that seed, a new one if there is none.
func (h *Host) claim(id, owner string) (*plane, error) {
	if !strings.HasPrefix(id, IDPrefix) || strings.ContainsAny(id, `/\.`) {
		return nil, fmt.Errorf("%q is no technical ID of a shoot", id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.planes[id]
	switch {
	case p != nil && p.owner == owner:
		return p, nil
	case p != nil:
		return nil, fmt.Errorf("%w: %s", ErrElsewhere, p.owner)
	case h.stopped:
		return nil, errStopped
	}
	ctx, cancel := context.WithCancel(context.Background())
	p = &plane{host: h, id: id, owner: owner, cancel: cancel, changed: make(chan struct{}, 1), ended: make(chan struct{})}
	p.state = State{ID: id, Owner: owner, Phase: Stopped}
	p.state.Port = h.ports.recorded(id)
	p.state.URL = urlOf(p.state.Port)
	h.planes[id] = p
	go p.run(ctx)
	return p, nil
}

// remove drops a control plane that has ended.
func (h *Host) remove(p *plane) {
	h.mu.Lock()
	if h.planes[p.id] != p {
		h.mu.Unlock()
		return
	}
	delete(h.planes, p.id)
	h.ports.release(p.id)
	h.mu.Unlock()
	h.cfg.OnChange(State{ID: p.id, Owner: p.owner, Phase: Gone})
}

// notify says that a control plane has changed.
func (h *Host) notify(s State) {
	h.cfg.OnChange(s)
	h.wakeOwner(s.ID, s.Owner)
}

// wakeOwner has a seed look at a control plane.
func (h *Host) wakeOwner(id, owner string) {
	h.mu.Lock()
	changed := h.watchers[owner]
	h.mu.Unlock()
	if changed != nil {
		changed(id)
	}
}
