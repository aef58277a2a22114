package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// State is the state of an instance.
type State string

const (
	// Pending is the state of an instance that has an address, and boots, waits for its turn to boot, or waits for its
	// public address because another program on the host uses it, which Message says.
	Pending State = "Pending"
	// Running is the state of an instance that has booted: its user data has run, and its units have been started.
	Running State = "Running"
	// Stopped is the state of an instance that was powered off from within. It stays stopped.
	Stopped State = "Stopped"
	// Failed is the state of an instance that could not boot; Message says why. The next Open tries again.
	Failed State = "Failed"
)

// TagMachine is the tag of the instance of a Machine. Its value is the namespace of the Machine.
const TagMachine = "machine.sapcloud.io/namespace"

// InstanceSpec is the desired state of an instance.
type InstanceSpec struct {
	// ID is the instance's name in the whole cloud: at most 128 of a-z, 0-9, '-' and '.', a letter or digit first.
	ID       string `json:"id"`
	Network  string `json:"network"`  // where it gets an address
	Hostname string `json:"hostname"` // the ID if it is empty
	Zone     string `json:"zone,omitempty"`
	Type     string `json:"type,omitempty"`
	Image    string `json:"image,omitempty"`
	// UserData is what cloud-init runs at the first boot, at most 64 KiB.
	UserData []byte            `json:"userData,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	// Public makes the instance a bastion. It is nil for all other instances, which the host cannot reach.
	Public *PublicSpec `json:"public,omitempty"`
}

// Instance is the observed state of an instance.
type Instance struct {
	ID, Network, Hostname, Zone, Type, Image string
	Address                                  netip.Addr     // in the network, the same for its life
	PublicAddress                            netip.AddrPort // of a bastion on the host, the same for its life
	State                                    State
	Message                                  string // why it failed, or what went wrong with its user data
	Tags                                     map[string]string
	ProviderID                               string // the spec.providerID of its Node: "local:///<zone>/<ID>"
}

// record is the stored form of an instance.
type record struct {
	InstanceSpec
	Address netip.Addr `json:"address"`
	// PublicAddress is valid if and only if Public is set.
	PublicAddress netip.AddrPort `json:"publicAddress,omitzero"`
}

// The fields of an instance are guarded by Cloud.mu.
type instance struct {
	spec     InstanceSpec // without the user data, which stays on the disk
	address  netip.Addr
	state    State
	message  string
	deleting bool
	machine  *machine.Machine // nil if it does not run
	public   *exposure        // nil if it is no bastion

	// listeners are the listeners that Dial connects to, by port: that of SSH, and those of the machine's programs. It
	// is empty if the machine does not run, or the instance is a bastion.
	listeners map[uint16]*memnet.Listener
	cancel    context.CancelFunc
	// done is closed when the instance has ended; nil if it was never started.
	done chan struct{}
	// ready is closed when the instance runs, or has ended before that; nil if it was never started.
	ready chan struct{}
	// removing is held while the folder is being removed.
	removing sync.Mutex
}

func newInstance(r record) *instance {
	spec := r.InstanceSpec
	spec.UserData, spec.Tags, spec.Public = nil, maps.Clone(spec.Tags), nil
	i := &instance{spec: spec, address: r.Address, state: Pending}
	if r.Public != nil {
		i.public = &exposure{address: r.PublicAddress, forward: r.Public.Forward}
		ingress := r.Public.Ingress
		i.public.ingress.Store(&ingress)
	}
	return i
}

func (i *instance) status() Instance {
	status := Instance{
		ID: i.spec.ID, Network: i.spec.Network, Hostname: i.spec.Hostname, Zone: i.spec.Zone, Type: i.spec.Type, Image: i.spec.Image,
		Address: i.address, State: i.state, Message: i.message, Tags: maps.Clone(i.spec.Tags), ProviderID: providerID(i.spec),
	}
	if i.public != nil {
		status.PublicAddress = i.public.address
	}
	return status
}

// ProviderIDPrefix is the prefix of every provider ID of this cloud.
const ProviderIDPrefix = "local:///"

func providerID(spec InstanceSpec) string { return ProviderIDPrefix + spec.Zone + "/" + spec.ID }

// EnsureInstance creates an instance if it does not exist. It returns when the instance has an address; the instance
// boots in the background. An existing instance stays as it is, whatever the spec says; only another network is an
// error.
func (c *Cloud) EnsureInstance(_ context.Context, spec InstanceSpec) (Instance, error) {
	spec.Hostname = cmp.Or(spec.Hostname, spec.ID)
	if err := spec.check(); err != nil {
		return Instance{}, fmt.Errorf("creating instance: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i, err := c.ensure(spec)
	if err != nil {
		return Instance{}, fmt.Errorf("creating instance %s in network %s: %w", spec.ID, spec.Network, err)
	}
	return i.status(), nil
}

// ensure returns the instance of a spec, and creates it if it does not exist. The lock is held.
func (c *Cloud) ensure(spec InstanceSpec) (*instance, error) {
	i, n := c.instances[spec.ID], c.networks[spec.Network]
	switch {
	case c.ctx.Err() != nil:
		return nil, ErrClosed
	case c.damaged[spec.ID] != nil:
		return nil, c.damaged[spec.ID]
	case i != nil && i.deleting:
		return nil, ErrDeleting
	case i != nil && i.spec.Network != spec.Network:
		return nil, fmt.Errorf("it is in network %s", i.spec.Network)
	case i != nil:
		return i, nil
	case n == nil:
		return nil, fmt.Errorf("the network: %w", ErrNotFound)
	case len(c.instances) >= MaxInstances:
		return nil, fmt.Errorf("%w: there are %d instances already", ErrExhausted, MaxInstances)
	}
	address, err := n.free()
	if err != nil {
		return nil, err
	}
	return c.create(n, record{InstanceSpec: spec, Address: address})
}

// create creates the instance of a record, and starts it. The lock is held.
func (c *Cloud) create(n *network, r record) (*instance, error) {
	var listener net.Listener
	if r.Public != nil {
		var err error
		if listener, err = c.expose(&r); err != nil {
			return nil, err
		}
	}
	if err := c.saveInstance(r); err != nil {
		if listener != nil {
			_ = listener.Close()
		}
		return nil, err
	}
	i := newInstance(r)
	if i.public != nil {
		i.public.listener = listener
	}
	c.instances[r.ID], n.used[r.Address] = i, i
	c.launch(i)
	return i, nil
}

func (s InstanceSpec) check() error {
	if err := checkID(s.ID); err != nil {
		return err
	}
	switch {
	case len(s.UserData) > MaxUserData:
		return fmt.Errorf("%s: the user data has %d bytes, more than the %d that it may have", s.ID, len(s.UserData), MaxUserData)
	case len(s.Tags) > MaxTags:
		return fmt.Errorf("%s: %d tags are more than the %d that it may have", s.ID, len(s.Tags), MaxTags)
	case len(s.Hostname) > 253 || strings.Trim(s.Hostname, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "":
		return fmt.Errorf("%s: %q is no hostname", s.ID, s.Hostname[:min(len(s.Hostname), 253)])
	}
	if err := s.Public.check(); err != nil {
		return fmt.Errorf("%s: %w", s.ID, err)
	}
	for key, value := range s.Tags {
		if len(key)+len(value) > maxTagSize {
			return fmt.Errorf("%s: a tag has %d bytes, more than the %d that it may have", s.ID, len(key)+len(value), maxTagSize)
		}
	}
	return nil
}

// saveInstance creates the folder of an instance atomically.
func (c *Cloud) saveInstance(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	dir := c.unfinished(r.ID)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err = os.WriteFile(filepath.Join(dir, instanceFile), data, 0o600); err == nil {
		err = os.Rename(dir, c.instanceDir(r.ID))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.cfg.Keeper.Save(c.recordFile(r.ID)); err != nil {
		return errors.Join(err, os.RemoveAll(c.instanceDir(r.ID)))
	}
	return nil
}

func (c *Cloud) readRecord(id string) (r record, err error) {
	if err := readJSON(c.recordFile(id), &r); err != nil {
		return r, err
	}
	if r.ID != id {
		return r, fmt.Errorf("reading %s: it is of instance %q", c.recordFile(id), r.ID)
	}
	if (r.Public != nil) != r.PublicAddress.IsValid() {
		return r, fmt.Errorf("reading %s: only a bastion has a public address, and every bastion has one", c.recordFile(id))
	}
	return r, nil
}

func (c *Cloud) loadInstances() error {
	entries, err := os.ReadDir(c.instancesDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		id := entry.Name()
		if strings.HasPrefix(id, unfinished) {
			if err := os.RemoveAll(c.instanceDir(id)); err != nil {
				return err
			}
			continue
		}
		r, err := c.readRecord(id)
		n := c.networks[r.Network]
		if err == nil && n == nil {
			err = fmt.Errorf("reading %s: network %s: %w", c.recordFile(id), r.Network, ErrNotFound)
		}
		if err != nil {
			c.damaged[id] = fmt.Errorf("%w: put a copy of the file back and start the landscape again, or delete the instance",
				err)
			c.cfg.Log.Error(c.damaged[id], "An instance does not run", "instance", id)
			continue
		}
		i := newInstance(r)
		if _, err := os.Stat(c.stoppedMark(id)); err == nil {
			i.state = Stopped
		}
		c.instances[id], n.used[r.Address] = i, i
	}
	return nil
}

// launch starts an instance in the background. The lock is held.
func (c *Cloud) launch(i *instance) {
	ctx, cancel := context.WithCancel(c.ctx)
	i.cancel, i.done, i.ready = cancel, make(chan struct{}), make(chan struct{})
	var listener *memnet.Listener
	if i.public == nil {
		listener = memnet.Listen(netip.AddrPortFrom(i.address, SSHPort))
		i.listeners = map[uint16]*memnet.Listener{SSHPort: listener}
	}
	c.group.Go(func() {
		defer close(i.done)
		defer cancel()
		defer c.unbind(i)
		if listener != nil {
			defer listener.Close()
		}
		err := c.live(ctx, i, listener)
		c.ended(ctx, i, err)
	})
}

// live runs an instance: it waits for its turn, boots the machine, and runs it until ctx ends or it is powered off.
func (c *Cloud) live(ctx context.Context, i *instance, private *memnet.Listener) error {
	select {
	case c.boots <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	turn := sync.OnceFunc(func() { <-c.boots })
	defer turn()
	m, err := c.open(i)
	if err != nil {
		return err
	}
	c.mu.Lock()
	i.machine = m
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	bound := make(chan struct{})
	group.Go(func() {
		if err := c.serve(ctx, i, m, private, bound); err != nil && ctx.Err() == nil {
			c.cfg.Log.Error(err, "the SSH server of an instance ended", "instance", i.spec.ID)
		}
	})
	group.Go(func() {
		for _, done := range []<-chan struct{}{m.Booted(), bound} {
			select {
			case <-done:
				turn() // after Booted; a second call does nothing
			case <-ctx.Done():
				return
			}
		}
		c.booted(i, m)
	})
	return m.Run(ctx)
}

// serve answers SSH clients: those of a bastion on its public address, all others in the network. It closes bound when
// it listens.
func (c *Cloud) serve(ctx context.Context, i *instance, m *machine.Machine, private *memnet.Listener, bound chan<- struct{}) error {
	if i.public == nil {
		close(bound)
		return m.ServeSSH(ctx, private)
	}
	l, err := c.bind(ctx, i)
	if err != nil {
		return err
	}
	close(bound)
	return m.ServeSSH(ctx, l)
}

func (c *Cloud) open(i *instance) (*machine.Machine, error) {
	r, err := c.readRecord(i.spec.ID)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	network := c.networks[r.Network].cidr
	c.mu.Unlock()
	cfg := machine.Config{
		Dir: c.machineDir(r.ID), Hostname: r.Hostname, Addresses: []netip.Addr{r.Address}, Network: network,
		UserData: r.UserData, Programs: c.cfg.Programs, Keeper: c.cfg.Keeper, Clock: c.cfg.Clock, Log: c.cfg.Log.WithValues("instance", r.ID),
		Metadata: machine.Metadata{
			InstanceID: r.ID, ProviderID: providerID(r.InstanceSpec), Network: r.Network, Zone: r.Zone,
			InstanceType: r.Type, Image: r.Image, Tags: i.spec.Tags,
		},
	}
	if i.public != nil {
		c.guard(i, &cfg)
	} else {
		cfg.Listen = func(port uint16) (net.Listener, error) { return c.listen(i, port) }
	}
	return machine.New(cfg)
}

// listen opens a listener for a program of an instance's machine, on a port of the instance's address.
func (c *Cloud) listen(i *instance, port uint16) (net.Listener, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i.listeners == nil {
		return nil, fmt.Errorf("listening on port %d: %w", port, machine.ErrDown)
	}
	if l := i.listeners[port]; l != nil && !l.Closed() {
		return nil, fmt.Errorf("listening on port %d: the port is in use", port)
	}
	l := memnet.Listen(netip.AddrPortFrom(i.address, port))
	i.listeners[port] = l
	return l, nil
}

func (c *Cloud) booted(i *instance, m *machine.Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(i.ready)
	i.state, i.message = Running, ""
	if status := m.CloudInit(); status.Error != "" {
		i.message = status.Error
	}
}

func (c *Cloud) ended(ctx context.Context, i *instance, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		select {
		case <-i.ready:
		default:
			close(i.ready)
		}
	}()
	for _, l := range i.listeners {
		_ = l.Close()
	}
	i.machine, i.listeners = nil, nil
	switch {
	case ctx.Err() != nil: // it was stopped
		i.state = Pending
	case err != nil:
		i.state, i.message = Failed, err.Error()
		c.cfg.Log.Error(err, "an instance failed", "instance", i.spec.ID)
	default:
		i.state, i.message = Stopped, "powered off from within"
		if err := fsutil.WriteKept(c.cfg.Keeper, c.stoppedMark(i.spec.ID), nil, 0o600); err != nil {
			c.cfg.Log.Error(err, "an instance that was powered off will start again", "instance", i.spec.ID)
		}
	}
}

// DeleteInstance shuts an instance down, waits until it is down, and removes its disk. It does nothing if the instance
// does not exist. If ctx ends before, the instance still goes down, and another call removes it.
func (c *Cloud) DeleteInstance(ctx context.Context, id string) error {
	c.mu.Lock()
	i := c.instances[id]
	if i == nil {
		defer c.mu.Unlock()
		return c.removeDamaged(id)
	}
	i.deleting = true
	done := i.done
	if i.cancel != nil {
		i.cancel()
	}
	c.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("deleting instance %s: waiting until it is down: %w", id, context.Cause(ctx))
		}
	}
	i.removing.Lock()
	defer i.removing.Unlock()
	c.mu.Lock()
	gone := c.instances[id] != i // a concurrent Delete has removed it meanwhile
	c.mu.Unlock()
	if gone {
		return nil
	}
	if err := c.removeInstance(id); err != nil {
		return fmt.Errorf("deleting instance %s: %w", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.instances, id)
	delete(c.networks[i.spec.Network].used, i.address)
	return nil
}

// removeDamaged removes the folder of an instance whose record cannot be read, if it is one. The lock is held.
func (c *Cloud) removeDamaged(id string) error {
	if c.damaged[id] == nil {
		return nil
	}
	if err := c.removeInstance(id); err != nil {
		return fmt.Errorf("deleting instance %s: %w", id, err)
	}
	delete(c.damaged, id)
	return nil
}

// removeInstance removes the folder of an instance. It renames the folder first, so that a half removed one is never
// loaded.
func (c *Cloud) removeInstance(id string) error {
	if err := c.cfg.Keeper.Remove(c.instanceDir(id)); err != nil {
		return err
	}
	dir := c.unfinished(id)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(c.instanceDir(id), dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// Instance returns an instance.
func (c *Cloud) Instance(id string) (Instance, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.instances[id]
	if i == nil {
		return Instance{}, false
	}
	return i.status(), true
}

// Instances returns the instances of a network, sorted by ID.
func (c *Cloud) Instances(network string) (all []Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.networks[network]
	if n == nil {
		return nil
	}
	for _, i := range n.used {
		all = append(all, i.status())
	}
	slices.SortFunc(all, func(a, b Instance) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// HasHost reports whether an instance has the hostname.
func (c *Cloud) HasHost(hostname string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.instances {
		if i.spec.Hostname == hostname {
			return true
		}
	}
	return false
}

// Machine returns the machine of an instance, if it runs.
func (c *Cloud) Machine(id string) (*machine.Machine, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.instances[id]
	if i == nil || i.machine == nil {
		return nil, false
	}
	return i.machine, true
}
