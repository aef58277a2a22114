package shootaccess

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// renewAfter is the age at which a client gets a new certificate.
	renewAfter = Life / 2
	// idleTimeout closes unused connections.
	idleTimeout = 90 * time.Second
	// requestTimeout ends a request that hangs.
	requestTimeout = 10 * time.Second
	// requestsPerSecond and burst are the rate limit for one shoot.
	requestsPerSecond, burst = 20, 40
)

// Cluster gives the gardenlet access to the API server of one shoot.
type Cluster struct {
	// Config has the address and credentials, HTTP is the client that all requests use.
	Config *rest.Config
	HTTP   *http.Client
	// Client reads and writes the common kinds of a shoot without a cache.
	Client client.Client

	until time.Time
}

// Cache holds the clients for the shoots of a seed. A client is created on demand, and replaced when half of the life of its
// certificate is over.
type Cache struct {
	// Seed reads Secrets and Services live.
	Seed  client.Reader
	Clock clock.PassiveClock

	mu     sync.Mutex
	shoots map[types.NamespacedName]*Cluster
	closed bool
}

// Get returns the client of a Shoot whose control plane is in the namespace. It returns ErrNoEndpoint if the API server has
// no address.
func (c *Cache) Get(ctx context.Context, shoot types.NamespacedName, namespace string) (*Cluster, error) {
	c.mu.Lock()
	cluster := c.shoots[shoot]
	c.mu.Unlock()
	if cluster != nil && c.Clock.Now().Before(cluster.until) {
		return cluster, nil
	}
	config, err := New(ctx, c.Seed, namespace, c.Clock)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst, config.Timeout = requestsPerSecond, burst, requestTimeout
	cluster, err = NewCluster(config, c.Clock)
	if err != nil {
		return nil, fmt.Errorf("making a client for Shoot %s: %w", shoot, err)
	}
	cluster.until = c.Clock.Now().Add(renewAfter)
	return cluster, c.put(shoot, cluster)
}

func (c *Cache) put(shoot types.NamespacedName, cluster *Cluster) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("reaching Shoot %s: the gardenlet ends", shoot)
	}
	if before := c.shoots[shoot]; before != nil {
		before.HTTP.CloseIdleConnections()
	}
	if c.shoots == nil {
		c.shoots = map[types.NamespacedName]*Cluster{}
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

// NewCluster uses a transport of its own, because client-go never releases the transports that it creates. The caller closes
// the connections of the HTTP client.
func NewCluster(config *rest.Config, clk clock.PassiveClock) (*Cluster, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	tlsConfig.Time = clk.Now
	transport := &http.Transport{
		TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout, MaxIdleConnsPerHost: 1,
		TLSHandshakeTimeout: config.Timeout,
	}
	cluster := &Cluster{Config: config, HTTP: &http.Client{Transport: transport, Timeout: config.Timeout}}
	cluster.Client, err = client.New(config, client.Options{HTTPClient: cluster.HTTP, Scheme: scheme, Mapper: mapper})
	return cluster, err
}

// scheme and mapper are shared by the clients of all shoots, so that none has to use discovery.
var scheme, mapper = common()

func common() (*runtime.Scheme, meta.RESTMapper) {
	s := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme,
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme)
	_ = builder.AddToScheme(s) // the types are known: nothing can fail
	m := meta.NewDefaultRESTMapper(s.PrioritizedVersionsAllGroups())
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion, rbacv1.SchemeGroupVersion,
		admissionregistrationv1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion} {
		for kind := range s.KnownTypes(gv) {
			scope := meta.RESTScopeNamespace
			if clusterScoped[kind] {
				scope = meta.RESTScopeRoot
			}
			m.Add(gv.WithKind(kind), scope)
		}
	}
	return s, m
}

var clusterScoped = map[string]bool{
	"ClusterRole": true, "ClusterRoleBinding": true,
	"Node": true, "Namespace": true, "PersistentVolume": true, "ComponentStatus": true, "CustomResourceDefinition": true,
	"ValidatingWebhookConfiguration": true, "MutatingWebhookConfiguration": true,
	"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true, "MutatingAdmissionPolicy": true,
	"MutatingAdmissionPolicyBinding": true,
}
