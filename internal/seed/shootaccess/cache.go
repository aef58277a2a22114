package shootaccess

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// renewAfter is the age at which a client gets a new certificate.
	renewAfter = Life / 2
	// requestTimeout ends a request that hangs.
	requestTimeout = 10 * time.Second
	// requestsPerSecond and burst are the rate limit for one shoot.
	requestsPerSecond, burst = 20, 40
)

// Cache holds the clients for the shoots of a seed. A client is created on demand, and replaced when half of the life of its
// certificate is over.
type Cache struct {
	// Seed reads Secrets and Services live.
	Seed  client.Reader
	Clock clock.PassiveClock
	// User is the user in the shoots, the gardenlet by default.
	User string
	// AllKinds lets the clients discover the kinds that a shoot serves. Otherwise they know the common ones.
	AllKinds bool

	mu     sync.Mutex
	shoots map[types.NamespacedName]*cachedCluster
	closed bool
}

type cachedCluster struct {
	*Cluster
	renewAt time.Time
}

// Get returns the client of a Shoot whose control plane is in the namespace. It returns ErrNoEndpoint if the API
// server has no address.
func (c *Cache) Get(ctx context.Context, shoot types.NamespacedName, namespace string) (*Cluster, error) {
	c.mu.Lock()
	cached := c.shoots[shoot]
	c.mu.Unlock()
	if cached != nil && c.Clock.Now().Before(cached.renewAt) {
		return cached.Cluster, nil
	}
	config, err := New(ctx, c.Seed, namespace, cmp.Or(c.User, User), c.Clock)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst, config.Timeout = requestsPerSecond, burst, requestTimeout
	cluster, err := NewCluster(config, c.Clock, c.AllKinds)
	if err != nil {
		return nil, fmt.Errorf("making a client for Shoot %s: %w", shoot, err)
	}
	return cluster, c.put(shoot, &cachedCluster{cluster, c.Clock.Now().Add(renewAfter)})
}

func (c *Cache) put(shoot types.NamespacedName, cluster *cachedCluster) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("reaching Shoot %s: the component ends", shoot)
	}
	if before := c.shoots[shoot]; before != nil {
		before.HTTP.CloseIdleConnections()
	}
	if c.shoots == nil {
		c.shoots = map[types.NamespacedName]*cachedCluster{}
	}
	c.shoots[shoot] = cluster
	return nil
}

// Drop closes the client of a Shoot that is gone, hibernated or does not respond. The next Get creates a new one.
func (c *Cache) Drop(shoot types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cluster := c.shoots[shoot]; cluster != nil {
		cluster.HTTP.CloseIdleConnections()
		delete(c.shoots, shoot)
	}
}

// Close closes all clients. Get fails from then on.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cluster := range c.shoots {
		cluster.HTTP.CloseIdleConnections()
	}
	c.shoots, c.closed = nil, true
}

// Len returns the number of clients.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.shoots)
}
