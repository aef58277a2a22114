package kubecontrollers

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Config is the configuration of the controllers.
type Config struct {
	// ClientConfig returns a client configuration for a component with the given name, user and groups.
	ClientConfig func(component, user string, groups ...string) (*rest.Config, error)
	// Select selects the controllers, like --controllers of kube-controller-manager: "*", "name", "-name".
	Select []string
	// Nodes enables the controllers for clusters with nodes. They need the objects of manifests/shoot.
	Nodes bool
	// Workloads enables the scheduler and the workload controllers, for clusters whose nodes run Pods.
	Workloads bool
	// PodCIDR is the network of the Pods. Each Node gets a range with a prefix of NodeMask bits; none if PodCIDR is not
	// valid.
	PodCIDR netip.Prefix
	// LoadBalancersOfOthers selects the Services of type LoadBalancer whose address others write, none if nil.
	LoadBalancersOfOthers labels.Selector
	// NodeMask is the prefix length of the Pod range of a Node. The default is 24, and 64 for IPv6.
	NodeMask int
	// DeploymentSelector is the label selector of the Deployments that the Deployment controller reconciles; all if
	// empty.
	DeploymentSelector string
	// Idle, if set, reports whether a resource has no objects, except the one with the given namespace and name, "" for
	// none. If so, it calls wake when the first one is created: the controllers watch the resource only then.
	Idle func(resource schema.GroupResource, except string, wake func()) bool
	// DeleteVolume removes the data of a PersistentVolume of manifests.VolumeProvisioner; nil if volumes have no data.
	DeleteVolume func(types.UID) error
	// RootCA is published in every namespace.
	RootCA []byte
	// SigningCertFile and SigningKeyFile are the certificate authority that signs certificate signing requests.
	SigningCertFile, SigningKeyFile string
	// ServiceAccountKeyFile signs service account tokens that are kept in Secrets.
	ServiceAccountKeyFile string
	// LeaderElection makes Start run the controllers only in one process at a time.
	LeaderElection bool
}

// Controllers is a set of controllers that are ready to run.
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
	// wanted receives the workload controllers that are to start.
	wanted chan definition
}

// Names returns the names of all controllers, except those that only a cluster with nodes has.
func Names() []string {
	var names []string
	for _, d := range slices.Concat(table, workloads) {
		if !forNodes.Has(d.name) {
			names = append(names, d.name)
		}
	}
	return names
}

// definition says how to create a controller.
type definition struct {
	// name is the name in kube-controller-manager, serviceAccount the identity in kube-system. Without a
	// serviceAccount, the controller has the identity of the shared informers; the scheduler has its own.
	name, serviceAccount string
	// workers is passed on to Run.
	workers int
	// resources are those whose first object starts the controller; it starts at once if there are none.
	resources []schema.GroupResource
	new       func(context.Context, *Controllers, *client, *handlers) (runner, error)
}

// runner is the common interface of Kubernetes' controllers. Run returns when the context ends.
type runner interface {
	Run(ctx context.Context, workers int)
}

// runFunc is a runner that has its number of workers itself.
type runFunc func(context.Context)

func (f runFunc) Run(ctx context.Context, _ int) { f(ctx) }

// runnerOf returns the runner of a controller that has its number of workers itself, or the error of its constructor.
func runnerOf(controller interface{ Run(context.Context) }, err error) (runner, error) {
	if err != nil {
		return nil, err
	}
	return runFunc(controller.Run), nil
}

// together returns a runner of several functions, which ends when all of them have ended.
func together(parts ...func(context.Context)) runFunc {
	return func(ctx context.Context) {
		var running sync.WaitGroup
		for _, part := range parts {
			running.Go(func() { part(ctx) })
		}
		running.Wait()
	}
}

// create creates the controller, and returns the function that runs it.
func (d definition) create(ctx context.Context, c *Controllers) (func(context.Context), error) {
	client, err := c.shared, error(nil)
	switch {
	case d.serviceAccount != "":
		client, err = c.clients.serviceAccount(d.serviceAccount)
	case d.name == schedulerName:
		client, err = c.clients.make(schedulerName, schedulerUser)
	}
	if err != nil {
		return nil, fmt.Errorf("making a client for the controller %s: %w", d.name, err)
	}
	h := &handlers{}
	created, err := d.new(ctx, c, client, h)
	if err != nil {
		return nil, fmt.Errorf("making the controller %s: %w", d.name, err)
	}
	run := func(ctx context.Context) { created.Run(ctx, d.workers) }
	if err := h.add(); err != nil { // for example because the informers have stopped
		ended, cancel := context.WithCancel(ctx)
		cancel()
		run(ended) // ends the queues of the controller
		return nil, fmt.Errorf("adding the event handlers of the controller %s: %w", d.name, err)
	}
	return run, nil
}

// ValidateSelect checks a selection of controllers. others are the names of controllers outside of this package.
func ValidateSelect(selection []string, others ...string) error {
	known := append(Names(), others...)
	for _, s := range selection {
		if name := strings.TrimPrefix(s, "-"); name != "*" && !slices.Contains(known, name) {
			return fmt.Errorf("%q is no controller: there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Selected reports whether a selection includes the controller. A name takes precedence over "*". nil selects all, an empty
// selection none.
func Selected(selection []string, name string) bool {
	if slices.Contains(selection, "-"+name) {
		return false
	}
	return selection == nil || slices.Contains(selection, name) || slices.Contains(selection, "*")
}

// New returns the selected controllers. The server must be ready, because New discovers its resources. It starts
// nothing. The caller cancels the context to end Run, or if New fails.
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
	c.discovery = &freshDiscovery{DiscoveryInterface: c.shared.Discovery(), http: c.shared.http}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.shared.Discovery()))
	// The constructor of the namespace controller ends the process if it finds no resources: check this before.
	if _, err := c.discovery.ServerPreferredResources(); err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the API server for its resources: %w", err)
	}
	for _, entry := range table {
		if !Selected(cfg.Select, entry.name) || forNodes.Has(entry.name) && !cfg.Nodes {
			continue
		}
		run, err := entry.create(ctx, c)
		if err != nil {
			return nil, err
		}
		c.runs = append(c.runs, run)
	}
	c.awaitWorkloads()
	return c, nil
}

// Ready returns a channel that is closed when the caches of the controllers have synced, or Run has ended.
func (c *Controllers) Ready() <-chan struct{} { return c.ready }

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
