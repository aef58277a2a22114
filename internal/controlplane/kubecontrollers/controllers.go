package kubecontrollers

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Config says where and as whom the controllers work.
type Config struct {
	// ClientConfig makes a client config for a component: a name for it, and the user and groups to be.
	ClientConfig func(component, user string, groups ...string) (*rest.Config, error)
	// Select says which controllers run, as --controllers of kube-controller-manager: "*", "name", "-name".
	Select []string
	// Nodes says that the cluster has nodes: controllers for them run as well. They need the objects of manifests/shoot.
	Nodes bool
	// Workloads says that Pods run on the cluster's nodes: the scheduler and the workload controllers run as well.
	Workloads bool
	// PodCIDR is the network of the Pods, of which each Node gets a range of NodeMask bits; none if it is not valid.
	PodCIDR netip.Prefix
	// NodeMask is 24 if it is 0, and 64 for IPv6.
	NodeMask int
	// DeploymentSelector selects the Deployments by label that the Deployment controller is for; all if it is empty.
	DeploymentSelector string
	// Idle, if set, says of a resource whether it has no objects, and then has the function called once there is one: only
	// then the resource is watched.
	Idle func(resource schema.GroupResource, wake func()) bool
	// DeleteVolume removes the data of a PersistentVolume of manifests.VolumeProvisioner; nil if volumes have no data.
	DeleteVolume func(types.UID) error
	// RootCA is published in every namespace.
	RootCA []byte
	// SigningCertFile and SigningKeyFile are the authority that signs certificate signing requests.
	SigningCertFile, SigningKeyFile string
	// ServiceAccountKeyFile signs service account tokens that are kept in Secrets.
	ServiceAccountKeyFile string
	// LeaderElection has Start run the controllers only while no other process does.
	LeaderElection bool
}

// Controllers are controllers that are ready to run.
type Controllers struct {
	cfg       Config
	clients   clients
	shared    *client
	informers sharedInformers
	discovery *freshDiscovery
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	// started is closed when the informers have been started, ready when they have synced.
	started, ready chan struct{}
	runs           []func(context.Context)
	names          []string
	// wanted has the workload controllers that are to start.
	wanted chan workload
}

// Names are all controllers there are, but for those that only a cluster with nodes has.
func Names() []string {
	var names []string
	for _, c := range table {
		if !forNodes.Has(c.name) {
			names = append(names, c.name)
		}
	}
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

// ValidateSelect checks a selection of controllers. Names that are not of this package are for others to know.
func ValidateSelect(selection []string, others ...string) error {
	known := append(Names(), others...)
	for _, s := range selection {
		if name := strings.TrimPrefix(s, "-"); name != "*" && !slices.Contains(known, name) {
			return fmt.Errorf("%q is no controller: there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Selected says whether a selection has the controller. What is named counts before "*".
func Selected(selection []string, name string) bool {
	if slices.Contains(selection, "-"+name) {
		return false
	}
	return len(selection) == 0 || slices.Contains(selection, name) || slices.Contains(selection, "*")
}

// New makes the selected controllers, for a server that is ready: they ask it for its resources. Nothing runs yet. The
// context is to be cancelled when Run is to end, or if New fails.
func New(ctx context.Context, cfg Config) (_ *Controllers, err error) {
	c := &Controllers{cfg: cfg, clients: clients{config: cfg.ClientConfig}, started: make(chan struct{}), ready: make(chan struct{})}
	defer func() {
		if err != nil {
			c.clients.close()
		}
	}()
	if c.shared, err = c.clients.shared(); err != nil {
		return nil, err
	}
	c.informers = newSharedInformers(c.shared, cfg.Idle)
	c.discovery = &freshDiscovery{client: c.shared.Discovery(), http: c.shared.http}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.shared.Discovery()))
	// The namespace controller ends the whole process if it finds no resources when it is made: find out before.
	if _, err := c.discovery.ServerPreferredResources(); err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the API server for its resources: %w", err)
	}
	for _, entry := range table {
		if !Selected(cfg.Select, entry.name) || forNodes.Has(entry.name) && !cfg.Nodes {
			continue
		}
		client := c.shared
		if entry.serviceAccount != "" {
			if client, err = c.clients.serviceAccount(entry.serviceAccount); err != nil {
				return nil, fmt.Errorf("making a client for the controller %s: %w", entry.name, err)
			}
		}
		run, err := entry.new(ctx, c, client)
		if err != nil {
			return nil, fmt.Errorf("making the controller %s: %w", entry.name, err)
		}
		c.runs, c.names = append(c.runs, run...), append(c.names, entry.name)
	}
	c.awaitWorkloads()
	return c, nil
}

// Ready is closed when Run has read once what the controllers watch, or has ended.
func (c *Controllers) Ready() <-chan struct{} { return c.ready }

// Running are the names of the controllers that Run runs.
func (c *Controllers) Running() []string { return c.names }

// Run runs the controllers until the context is cancelled, and returns when all have ended. It can be called once.
func (c *Controllers) Run(ctx context.Context) {
	defer c.clients.close()
	var running sync.WaitGroup
	for _, run := range c.runs {
		running.Go(func() { run(ctx) })
	}
	c.informers.start(ctx)
	running.Go(func() { c.runWorkloads(ctx, &running) })
	close(c.started)
	c.informers.waitForSync(ctx)
	close(c.ready)
	running.Wait()
	<-ctx.Done()
	c.informers.shutdown()
}
