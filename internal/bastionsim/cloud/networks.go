package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
	"github.com/gardenlite/gardenlite/internal/component/shootowner"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// The fields of a network are guarded by Cloud.mu.
type network struct {
	id   string
	cidr netip.Prefix
	// owner is the zero value for the networks of an earlier version; see Adopt.
	owner shootowner.Owner
	// used has the instances by address.
	used map[netip.Addr]*instance
}

type networkRecord struct {
	CIDR  netip.Prefix     `json:"cidr"`
	Owner shootowner.Owner `json:"owner,omitzero"`
}

// EnsureNetwork creates a network if it does not exist. It returns an error if the network exists with another CIDR.
func (c *Cloud) EnsureNetwork(_ context.Context, id string, cidr netip.Prefix) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("creating a network: %w", err)
	}
	cidr = cidr.Masked()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.networks[id]
	switch {
	case c.ctx.Err() != nil:
		return fmt.Errorf("creating network %s: %w", id, ErrClosed)
	case n != nil && n.cidr == cidr:
		return nil
	case n != nil:
		return fmt.Errorf("creating network %s with %s: it is there with %s; delete it first", id, cidr, n.cidr)
	case len(c.networks) >= MaxNetworks:
		return fmt.Errorf("creating network %s: %w: there are %d networks already", id, ErrExhausted, MaxNetworks)
	}
	n = &network{id: id, cidr: cidr, used: map[netip.Addr]*instance{}}
	if _, err := n.free(); err != nil {
		return fmt.Errorf("creating network %s: %s has no address to give away: the first %d are reserved: %w", id, cidr, Reserved, err)
	}
	if err := c.saveNetwork(n); err != nil {
		return fmt.Errorf("creating network %s: %w", id, err)
	}
	c.networks[id] = n
	return nil
}

func (c *Cloud) saveNetwork(n *network) error {
	data, err := json.Marshal(networkRecord{n.cidr, n.owner})
	if err != nil {
		return err
	}
	return fsutil.WriteKept(c.cfg.Keeper, c.networkFile(n.id), data, 0o600)
}

func (c *Cloud) loadNetworks() error {
	entries, err := os.ReadDir(c.networksDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		file := filepath.Join(c.networksDir(), entry.Name())
		id, isNetwork := strings.CutSuffix(entry.Name(), jsonSuffix)
		if strings.HasPrefix(id, unfinished) || !isNetwork {
			if err := os.Remove(file); err != nil {
				return err
			}
			continue
		}
		var r networkRecord
		if err := readJSON(file, &r); err != nil { // the next EnsureNetwork writes it anew
			c.cfg.Log.Error(err, "A network is not there", "network", id)
			continue
		}
		c.networks[id] = &network{id: id, cidr: r.CIDR, owner: r.Owner, used: map[netip.Addr]*instance{}}
	}
	return nil
}

// DeleteNetwork removes a network. It returns ErrInUse while the network has instances, and nil if it does not exist.
func (c *Cloud) DeleteNetwork(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.networks[id]
	if n == nil {
		return nil
	}
	if len(n.used) > 0 {
		return fmt.Errorf("deleting network %s: %w: it has %d instances", id, ErrInUse, len(n.used))
	}
	err := c.cfg.Keeper.Remove(c.networkFile(id))
	if err == nil {
		err = os.Remove(c.networkFile(id))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting network %s: %w", id, err)
	}
	delete(c.networks, id)
	return nil
}

// free returns the first address that no instance has.
func (n *network) free() (netip.Addr, error) {
	if !n.cidr.IsValid() {
		return netip.Addr{}, errors.New("this is no CIDR")
	}
	address := n.cidr.Addr()
	for range Reserved {
		address = address.Next()
	}
	for ; n.cidr.Contains(address); address = address.Next() {
		broadcast := address.Is4() && !n.cidr.Contains(address.Next())
		if n.used[address] == nil && !broadcast {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: all addresses of %s are taken", ErrExhausted, n.cidr)
}

// router returns the source address of connections whose caller does not name one.
func (n *network) router() netip.Addr { return n.cidr.Addr().Next() }

// Dial connects to an address of a network, from the network's router. Instances answer on port 22 and on the ports
// that their programs listen on.
func (c *Cloud) Dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	return c.dial(ctx, network, netip.Addr{}, to, func(*instance) error { return nil })
}

// dial is like Dial, but the instance sees a source address if from is one, and the connection fails with the error of
// allowed, which gets nil if no instance has the address.
func (c *Cloud) dial(ctx context.Context, network string, from netip.Addr, to netip.AddrPort,
	allowed func(*instance) error) (net.Conn, error) {
	listener, from, err := c.target(network, from, to, allowed)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to %s in network %s: %w", to, network, err)
	}
	const first, count = 32768, 28232 // the range of ephemeral ports
	return listener.Dial(netip.AddrPortFrom(from, uint16(first+c.ports.Add(1)%count)))
}

func (c *Cloud) target(network string, from netip.Addr, to netip.AddrPort, allowed func(*instance) error) (
	*memnet.Listener, netip.Addr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.networks[network]
	if n == nil {
		return nil, from, fmt.Errorf("the network: %w", ErrNotFound)
	}
	if !from.IsValid() {
		from = n.router()
	}
	i := n.used[to.Addr()]
	if err := allowed(i); err != nil {
		return nil, from, err
	}
	switch {
	case i == nil:
		return nil, from, fmt.Errorf("no route to host: an instance with this address: %w", ErrNotFound)
	case i.listeners[to.Port()] == nil:
		return nil, from, memnet.ErrRefused
	}
	return i.listeners[to.Port()], from, nil
}
