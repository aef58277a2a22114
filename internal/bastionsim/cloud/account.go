package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/bastionspec"
	"github.com/gardenlite/gardenlite/internal/component/shootowner"
)

// Account is the access of one seed to the cloud. It has the networks that the seed owns, and the instances in them;
// for it, there are no others.
type Account struct {
	cloud  *Cloud
	seed   string
	garden shootowner.Garden
}

// Account returns the access of a seed. The garden confirms which networks belong to the seed; without one, a seed gets
// every network that it creates anew.
func (c *Cloud) Account(seed string, garden shootowner.Garden) *Account {
	return &Account{c, seed, garden}
}

// EnsureNetwork is that of Cloud. A network of another seed becomes that of this one if the garden has the Shoot there;
// if it is of an earlier Shoot of the same name, it is deleted first, with its instances.
func (a *Account) EnsureNetwork(ctx context.Context, id string, cidr netip.Prefix) error {
	before, known := a.cloud.ownerOf(id)
	owner, err := shootowner.Claim(ctx, a.garden, id, a.seed, before)
	if err != nil {
		return fmt.Errorf("creating network %s: %w", id, err)
	}
	if known && owner.IsOtherShoot(before) {
		for _, instance := range a.cloud.Instances(id) {
			err = errors.Join(err, a.cloud.DeleteInstance(ctx, instance.ID))
		}
		if err = errors.Join(err, a.cloud.DeleteNetwork(ctx, id)); err != nil {
			return err
		}
	}
	if err := a.cloud.EnsureNetwork(ctx, id, cidr); err != nil {
		return err
	}
	return a.cloud.setOwner(id, owner)
}

// DeleteNetwork is that of Cloud.
func (a *Account) DeleteNetwork(ctx context.Context, id string) error {
	if !a.owns(id) {
		return nil
	}
	return a.cloud.DeleteNetwork(ctx, id)
}

// EnsureInstance is that of Cloud.
func (a *Account) EnsureInstance(ctx context.Context, spec InstanceSpec) (Instance, error) {
	if !a.owns(spec.Network) {
		return Instance{}, fmt.Errorf("creating instance %s in network %s: the network: %w", spec.ID, spec.Network,
			ErrNotFound)
	}
	return a.cloud.EnsureInstance(ctx, spec)
}

// DeleteInstance is that of Cloud.
func (a *Account) DeleteInstance(ctx context.Context, id string) error {
	if _, found := a.Instance(id); !found {
		return nil
	}
	return a.cloud.DeleteInstance(ctx, id)
}

// Instance is that of Cloud.
func (a *Account) Instance(id string) (Instance, bool) {
	instance, found := a.cloud.Instance(id)
	if !found || !a.owns(instance.Network) {
		return Instance{}, false
	}
	return instance, true
}

// Instances is that of Cloud.
func (a *Account) Instances(network string) []Instance {
	if !a.owns(network) {
		return nil
	}
	return a.cloud.Instances(network)
}

// UpdateIngress is that of Cloud.
func (a *Account) UpdateIngress(ctx context.Context, id string, rules bastionspec.Ingress) error {
	if _, found := a.Instance(id); !found {
		return fmt.Errorf("changing the ingress of instance %s: %w", id, ErrNotFound)
	}
	return a.cloud.UpdateIngress(ctx, id, rules)
}

// Ready is that of Cloud.
func (a *Account) Ready(id string) <-chan struct{} {
	if _, found := a.Instance(id); !found {
		return nil
	}
	return a.cloud.Ready(id)
}

func (a *Account) owns(network string) bool {
	owner, known := a.cloud.ownerOf(network)
	return known && (owner.Seed == a.seed || owner.Seed == "" && a.garden == nil)
}

// Adopt records the owners of networks of an earlier version, which recorded none. A network whose Shoot is gone stays
// without.
func (c *Cloud) Adopt(ctx context.Context, garden shootowner.Garden) error {
	c.mu.Lock()
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(c.networks)),
		func(id string) bool { return c.networks[id].owner.Seed != "" })
	c.mu.Unlock()
	for _, id := range ids {
		shoot, err := garden.Shoot(ctx, id)
		if err == nil && shoot != nil {
			seed := ptr.Deref(shoot.Status.SeedName, ptr.Deref(shoot.Spec.SeedName, ""))
			err = c.setOwner(id, shootowner.Owner{Seed: seed, Shoot: shoot.UID})
		}
		if err != nil {
			return fmt.Errorf("reading the Shoot of network %s: %w", id, err)
		}
	}
	return nil
}

func (c *Cloud) ownerOf(network string) (shootowner.Owner, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.networks[network]
	if n == nil {
		return shootowner.Owner{}, false
	}
	return n.owner, true
}

func (c *Cloud) setOwner(network string, owner shootowner.Owner) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.networks[network]
	if n == nil {
		return fmt.Errorf("network %s: %w", network, ErrNotFound)
	}
	if n.owner == owner {
		return nil
	}
	before := n.owner
	n.owner = owner
	if err := c.saveNetwork(n); err != nil {
		n.owner = before
		return fmt.Errorf("recording the owner of network %s: %w", network, err)
	}
	return nil
}
