package shootplane

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/component/shootowner"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// startsAtOnce is how many control planes start at the same time. A higher number does not help: the creation of an
// API server is bound by the processor, and most of it is serialized.
const startsAtOnce = 4

// IDPrefix is the prefix of the technical ID of every shoot.
const IDPrefix = "shoot--"

// ErrOwnedByOtherSeed says that another seed of the process runs the control plane.
var ErrOwnedByOtherSeed = errors.New("the control plane runs in another seed")

// ErrForeign says that the garden does not have the Shoot on the seed.
var ErrForeign = shootowner.ErrForeign

// errStopped says that the Host accepts no control planes any more.
var errStopped = errors.New("the process is being stopped")

// HostConfig configures a Host. Dir is required.
type HostConfig struct {
	// Dir is the state directory of the landscape: data is kept in data/shoots/<id>, certificates in pki/shoots/<id>.
	Dir string
	// Keeper is told of the files with the port and the owner of a control plane; nil if they are in the state directory only.
	Keeper fsutil.Keeper
	// Datastore is passed on to controlplane.Config. Prefix returns the prefix of a shoot's data in a shared datastore.
	Datastore string
	Prefix    func(id string) string
	// DialNode connects to an address and port in the network of a shoot, where its Nodes are; nil if the Nodes are not
	// reachable.
	DialNode func(ctx context.Context, id, address string) (net.Conn, error)
	// DialWebhooks, if set, connects to the webhooks of the gardener-resource-manager that is deployed for a shoot.
	DialWebhooks func(ctx context.Context, id string) (net.Conn, error)
	// ServesPod is passed on to controlplane.Config.
	ServesPod func(apiServer string, at netip.AddrPort) bool
	// DeleteVolume deletes the data of a PersistentVolume of a shoot, DeleteVolumes that of all; they may be nil.
	DeleteVolume  func(id string, volume types.UID) error
	DeleteVolumes func(id string) error
	// Garden confirms to which seed a Shoot belongs. If it is nil, the control plane is that of the first seed.
	Garden shootowner.Garden
	// AuditLog returns the file for a shoot's audit log, "" for none.
	AuditLog func(id string) string
	// Clock is the real clock by default.
	Clock clock.WithTicker
	Log   logr.Logger
	// OnChange, if set, is called for every change of a Status. It must not call the Host.
	OnChange func(Status)
}

// Host runs the control planes of all shoots of a process.
type Host struct {
	cfg   HostConfig
	slots chan struct{}
	ports ports
	// owning is held while the owner of a control plane is determined.
	owning sync.Mutex

	mu       sync.Mutex
	planes   map[string]*plane
	watchers map[string]func(id string)
	stopped  bool
}

// NewHost returns a Host without control planes.
func NewHost(cfg HostConfig) *Host {
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	cfg.Keeper = cmp.Or[fsutil.Keeper](cfg.Keeper, fsutil.Nowhere{})
	if cfg.Prefix == nil {
		cfg.Prefix = func(string) string { return "" }
	}
	if cfg.AuditLog == nil {
		cfg.AuditLog = func(string) string { return "" }
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func(Status) {}
	}
	h := &Host{cfg: cfg, slots: make(chan struct{}, startsAtOnce),
		planes: map[string]*plane{}, watchers: map[string]func(string){}}
	h.ports = ports{dir: filepath.Join(cfg.Dir, "data", "shoots"), keeper: cfg.Keeper, reserved: map[int]string{}}
	return h
}

func (h *Host) dataDir(id string) string { return filepath.Join(h.cfg.Dir, "data", "shoots", id) }
func (h *Host) pkiDir(id string) string  { return filepath.Join(h.cfg.Dir, "pki", "shoots", id) }

// Apply sets the desired state of a seed's control plane, and returns at once. It calls read if the Host does not have
// the files of that state. It returns ErrOwnedByOtherSeed while the control plane still runs in another seed, and
// ErrForeign if the Shoot is not on the seed.
func (h *Host) Apply(ctx context.Context, id, owner string, desired DesiredState, read func() (map[string][]byte,
	error)) (Status, error) {
	p, err := h.claim(ctx, id, owner)
	if err != nil {
		return Status{}, err
	}
	last, _, _ := p.spec()
	switch {
	case !desired.APIServer:
	case last.Files != nil && last.sameServer(desired):
		desired.Files = last.Files
	default:
		if desired.Files, err = read(); err != nil {
			return p.observe(), err
		}
	}
	p.apply(desired)
	return p.observe(), nil
}

// Remove stops a control plane of a seed, deletes its certificates and, if data is true, its data. It returns at once,
// and reports whether all of it is done. A control plane of another seed is left alone.
func (h *Host) Remove(ctx context.Context, id, owner string, data bool) (Status, bool, error) {
	p, err := h.claim(ctx, id, owner)
	if errors.Is(err, ErrOwnedByOtherSeed) || errors.Is(err, ErrForeign) {
		return Status{ID: id, Phase: Gone}, true, nil
	}
	if err != nil {
		return Status{}, false, err
	}
	p.remove(data)
	select {
	case <-p.ended:
		h.remove(p)
		return Status{ID: id, Owner: owner, Phase: Gone}, true, nil
	default:
		return p.observe(), false, nil
	}
}

// Status returns the status of a control plane, and false if the Host does not have it.
func (h *Host) Status(id string) (Status, bool) {
	h.mu.Lock()
	p := h.planes[id]
	h.mu.Unlock()
	if p == nil {
		return Status{}, false
	}
	return p.observe(), true
}

// StatusOf returns the status of the control plane whose API server has a name, and false if none has.
func (h *Host) StatusOf(name string) (Status, bool) {
	if service, ok := strings.CutSuffix(name, ".svc"); ok {
		return h.Status(strings.TrimPrefix(service, spec.ServiceName+"."))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.planes {
		if desired, _, _ := p.spec(); slices.Contains(strings.Fields(desired.Hosts), name) {
			return p.observe(), true
		}
	}
	return Status{}, false
}

// Watch calls changed for each change of a seed's control planes, until the returned function is called.
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

// StopSeed stops all control planes of a seed and waits for them. Their data stays.
func (h *Host) StopSeed(owner string) {
	h.end(func(p *plane) bool { return p.owner == owner })
}

// Stop stops all control planes, waits for them, and accepts no new ones.
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

// claim returns the control plane of a shoot in a seed, and creates it if it does not exist.
func (h *Host) claim(ctx context.Context, id, owner string) (*plane, error) {
	if !strings.HasPrefix(id, IDPrefix) || strings.ContainsAny(id, `/\.`) {
		return nil, fmt.Errorf("%q is no technical ID of a shoot", id)
	}
	h.owning.Lock()
	defer h.owning.Unlock()
	if p, err := h.existing(id, owner); p != nil || err != nil {
		return p, err
	}
	if err := h.own(ctx, id, owner); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return nil, errStopped
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &plane{host: h, id: id, owner: owner, cancel: cancel, changed: make(chan struct{}, 1), ended: make(chan struct{})}
	port := h.ports.recorded(id)
	p.status = Status{ID: id, Owner: owner, Phase: Stopped, Port: port, URL: urlOf(port)}
	h.planes[id] = p
	go p.run(ctx)
	return p, nil
}

// existing returns the control plane of a shoot in a seed, nil if there is none.
func (h *Host) existing(id, owner string) (*plane, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.planes[id]
	if p != nil && p.owner != owner {
		return nil, fmt.Errorf("%w: %s", ErrOwnedByOtherSeed, p.owner)
	}
	return p, nil
}

// OwnerFile is the name of the file with the owner of the data beside it.
const OwnerFile = "owner.json"

// own makes a seed the owner of a control plane's data, if it may be. It deletes the data of an earlier Shoot of the
// same name.
func (h *Host) own(ctx context.Context, id, seed string) error {
	file := filepath.Join(h.dataDir(id), OwnerFile)
	var before shootowner.Owner
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &before)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the owner of a control plane in %s: %w", file, err)
	}
	owner, err := shootowner.Claim(ctx, h.cfg.Garden, id, seed, before)
	if err != nil || owner == before {
		return err
	}
	if owner.IsOtherShoot(before) {
		if err := h.clean(ctx, id, true); err != nil {
			return err
		}
	}
	if data, err = json.Marshal(owner); err != nil {
		return err
	}
	if err := os.MkdirAll(h.dataDir(id), 0o700); err != nil {
		return err
	}
	return fsutil.WriteKept(h.cfg.Keeper, file, data, 0o600)
}

// remove removes a control plane that has ended from the Host.
func (h *Host) remove(p *plane) {
	h.mu.Lock()
	if h.planes[p.id] != p {
		h.mu.Unlock()
		return
	}
	delete(h.planes, p.id)
	h.ports.release(p.id)
	h.mu.Unlock()
	h.cfg.OnChange(Status{ID: p.id, Owner: p.owner, Phase: Gone})
}

// notify passes a change of a control plane on to OnChange and to its seed.
func (h *Host) notify(s Status) {
	h.cfg.OnChange(s)
	h.wakeOwner(s.ID, s.Owner)
}

// wakeOwner makes the seed of a control plane reconcile it.
func (h *Host) wakeOwner(id, owner string) {
	h.mu.Lock()
	changed := h.watchers[owner]
	h.mu.Unlock()
	if changed != nil {
		changed(id)
	}
}
