package seed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/internal/node/clusternodes"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/seed/resourcemanager"
	"github.com/gardenlite/gardenlite/internal/seed/resourcemanager/webhooks"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
	"github.com/gardenlite/gardenlite/manifests"
)

// Config configures a seed cluster.
type Config struct {
	// Config is that of its control plane, but Name is the seed's name. Start sets what concerns Pods and Nodes.
	controlplane.Config
	// Region and Zones are those of the Nodes on which Pods run.
	Region string
	Zones  []string
	// ResourceManagerOfGardener says that the resource manager is left to Gardener's program: its ServiceAccount gets the role that it
	// has in Gardener.
	ResourceManagerOfGardener bool
	// Processes runs the containers whose images are mapped to programs; nil if all Pods are simulated.
	Processes *process.Runner
}

// User name and group of the seed cluster's administrator in its kubeconfig.
const (
	adminUser  = "gardenlite:admin"
	adminGroup = "system:masters"
)

const (
	// fieldManager is the field manager of all writes.
	fieldManager = "gardenlite"
	// namespaceRetry and namespaceTimeout limit the wait for kube-system, which a new API server creates after it is ready.
	namespaceRetry   = 20 * time.Millisecond
	namespaceTimeout = 30 * time.Second
)

// clusterPrefix precedes a seed's name in the name of its cluster, as in the name of its namespace in the garden, so that
// the cluster of no seed is taken for the garden.
const clusterPrefix = "seed-"

// Cluster is a running seed cluster.
type Cluster struct {
	name     string
	identity string
	server   *controlplane.Server
	admin    *rest.Config
	// http is the client for the set-up.
	http *http.Client

	controllers *kubecontrollers.Running
	nodes       clusternodes.Nodes
	// webhooks are the servers of webhooks by namespace, *webhooks.Server.
	webhooks sync.Map
}

// Start starts a seed cluster and returns when it is ready, or stopped after an error. The context covers the start only.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.Name == "" {
		return nil, errors.New("a seed cluster needs a name")
	}
	cfg.Clock = cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	if cfg.OnPhase == nil {
		cfg.OnPhase = func(string, time.Duration) {}
	}
	c := &Cluster{name: cfg.Name}
	var err error
	plane := cfg.Config
	plane.Name, plane.DialNode, plane.PrivateNodes = clusterPrefix+cfg.Name, c.nodes.Dial, true
	plane.ServesPod = cfg.Processes.ListensAt
	plane.StandIns = map[string]func(context.Context) (net.Conn, error){
		constants.GardenNamespace + "/" + webhooks.Service: func(ctx context.Context) (net.Conn, error) {
			return c.DialWebhooks(ctx, constants.GardenNamespace)
		},
	}
	c.server, err = controlplane.Start(ctx, plane)
	if err != nil {
		return nil, fmt.Errorf("starting the cluster of seed %s: %w", cfg.Name, err)
	}
	if err := c.setUp(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("setting up the cluster of seed %s: %w", cfg.Name, err), c.Stop())
	}
	return c, nil
}

// setUp creates the objects that every seed has, and then starts the controllers: those that handle every resource would
// otherwise restart when the custom resources appear.
func (c *Cluster) setUp(ctx context.Context, cfg Config) (err error) {
	begin := cfg.Clock.Now()
	if c.admin, err = c.server.ClientConfig("admin", adminUser, adminGroup); err != nil {
		return err
	}
	if c.http, err = rest.HTTPClientFor(c.admin); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if c.identity, err = ensureObjects(ctx, c.admin, c.http, cfg.ResourceManagerOfGardener); err != nil {
		return err
	}
	cfg.OnPhase("custom resources, namespaces", cfg.Clock.Since(begin))
	begin = cfg.Clock.Now()
	if err := c.startControllers(cfg); err != nil {
		return fmt.Errorf("starting the controllers: %w", err)
	}
	c.nodes.StartWithFirstPod(c.server, clusternodes.Config{
		Name: clusterPrefix + cfg.Name, Region: cfg.Region, Zones: cfg.Zones, Processes: cfg.Processes, Clock: cfg.Clock,
	})
	cfg.OnPhase("controllers", cfg.Clock.Since(begin))
	return nil
}

// ensureObjects creates or updates the objects that every seed has, and returns the cluster's identity.
func ensureObjects(ctx context.Context, config *rest.Config, httpClient *http.Client, resourceManagerOfGardener bool) (
	identity string, err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // many writes at once, in a row
	core, errCore := kubernetes.NewForConfigAndClient(config, httpClient)
	extensions, errExtensions := apiextensionsclient.NewForConfigAndClient(config, httpClient)
	objects, errObjects := dynamic.NewForConfigAndClient(config, httpClient)
	if err := errors.Join(errCore, errExtensions, errObjects); err != nil {
		return "", fmt.Errorf("making the clients: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return ensureCRDs(ctx, extensions.ApiextensionsV1().CustomResourceDefinitions(), core.Discovery())
	})
	group.Go(func() error {
		endpoints, err := manifest.LoadFS(manifests.Seed, "seed/default")
		if err != nil {
			return err
		}
		if _, err := waitForNamespace(ctx, core, metav1.NamespaceDefault); err != nil {
			return err
		}
		return manifest.Ensure(ctx, objects, endpoints)
	})
	group.Go(func() error {
		base, err := manifest.LoadFS(manifests.Seed, "seed/base")
		if err == nil && resourceManagerOfGardener {
			var roles []manifest.Object
			roles, err = manifest.LoadFS(manifests.Seed, "seed/programs")
			base = append(base, roles...)
		}
		if err != nil {
			return err
		}
		return manifest.Ensure(ctx, objects, base)
	})
	group.Go(func() error {
		defaults, err := manifest.LoadFS(manifests.FS, "cluster")
		if err != nil {
			return err
		}
		return manifest.CreateMissing(ctx, objects, defaults)
	})
	group.Go(func() (err error) {
		identity, err = ensureIdentity(ctx, core)
		return err
	})
	err = group.Wait()
	return identity, err
}

// ensureIdentity ensures the ConfigMap that identifies this cluster, and returns the identity. A new identity is the UID of
// kube-system, which a gardenlet would choose as well, so that all creators agree. An existing identity is kept.
func ensureIdentity(ctx context.Context, client kubernetes.Interface) (string, error) {
	configMaps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	current, err := configMaps.Get(ctx, constants.ClusterIdentity, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		current, err = createIdentity(ctx, client)
	}
	if apierrors.IsAlreadyExists(err) {
		current, err = configMaps.Get(ctx, constants.ClusterIdentity, metav1.GetOptions{})
	}
	if err != nil {
		return "", fmt.Errorf("looking for the cluster's identity, ConfigMap %s/%s: %w", metav1.NamespaceSystem,
			constants.ClusterIdentity, err)
	}
	identity := current.Data[constants.ClusterIdentity]
	if identity == "" {
		return "", fmt.Errorf("the ConfigMap %s/%s has no identity under %q: delete it, and a new one is made at the next start",
			metav1.NamespaceSystem, constants.ClusterIdentity, constants.ClusterIdentity)
	}
	return identity, nil
}

// waitForNamespace waits for a namespace that the API server creates.
func waitForNamespace(ctx context.Context, client kubernetes.Interface, name string) (namespace *corev1.Namespace, err error) {
	err = wait.PollUntilContextTimeout(ctx, namespaceRetry, namespaceTimeout, true, func(ctx context.Context) (done bool, err error) {
		namespace, err = client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the namespace %s: %w", name, err)
	}
	return namespace, nil
}

func createIdentity(ctx context.Context, client kubernetes.Interface) (*corev1.ConfigMap, error) {
	system, err := waitForNamespace(ctx, client, metav1.NamespaceSystem)
	if err != nil {
		return nil, err
	}
	return client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: constants.ClusterIdentity, Namespace: metav1.NamespaceSystem},
		Immutable:  ptr.To(true),
		Data: map[string]string{
			constants.ClusterIdentity:       string(system.UID),
			constants.ClusterIdentityOrigin: constants.ClusterIdentityOriginSeed,
		},
	}, metav1.CreateOptions{FieldManager: fieldManager})
}

func (c *Cluster) startControllers(cfg Config) (err error) {
	c.controllers, err = c.server.StartControllers(kubecontrollers.Config{
		Workloads:             true,
		PodCIDR:               clusternodes.PodNetwork,
		NodeMask:              clusternodes.Mask,
		DeploymentSelector:    spec.NotControlPlanes,
		LoadBalancersOfOthers: labels.SelectorFromSet(labels.Set{constants.GardenRole: constants.GardenRoleControlPlane}),
		DeleteVolume:          func(volume types.UID) error { return cfg.Processes.DeleteVolume(clusterPrefix+cfg.Name, volume) },
	})
	return err
}

// DialWebhooks connects to the webhooks of the gardener-resource-manager in a namespace.
func (c *Cluster) DialWebhooks(ctx context.Context, namespace string) (net.Conn, error) {
	server, _ := c.webhooks.LoadOrStore(namespace, &webhooks.Server{Namespace: namespace, Config: func() (*rest.Config, error) {
		return c.server.ClientConfig("resource-manager-webhooks", resourcemanager.User)
	}})
	return server.(*webhooks.Server).Dial(ctx)
}

// Name returns the seed's name.
func (c *Cluster) Name() string { return c.name }

// Identity returns the identity of the cluster, which is in the ConfigMap kube-system/cluster-identity.
func (c *Cluster) Identity() string { return c.identity }

// Server returns the seed's control plane.
func (c *Cluster) Server() *controlplane.Server { return c.server }

// AdminConfig returns a client configuration for the administrator, which the caller may change.
func (c *Cluster) AdminConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// AdminKubeconfig returns the administrator's kubeconfig, with a context of the given name.
func (c *Cluster) AdminKubeconfig(contextName string) ([]byte, error) {
	config, err := c.server.ClientConfig("admin", adminUser, adminGroup)
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the administrator of seed %s: %w", c.name, err)
	}
	return clientcmd.Write(*controlplane.Kubeconfig(contextName, c.server.URL(), c.server.PKI().CAPEM(), config.CertData, config.KeyData))
}

// Done returns a channel that is closed when the cluster has ended; Err returns the reason.
func (c *Cluster) Done() <-chan struct{} { return c.server.Done() }

// Err returns the error with which the cluster ended. Call it after Done.
func (c *Cluster) Err() error { return c.server.Err() }

// Stop stops the Node, the controllers and the server, and waits for all.
func (c *Cluster) Stop() error {
	c.nodes.Stop()
	c.webhooks.Range(func(_, server any) bool { server.(*webhooks.Server).Close(); return true })
	c.controllers.Stop()
	if c.http != nil {
		// Otherwise the idle connections would stay open for minutes, also in the server.
		utilnet.CloseIdleConnectionsFor(c.http.Transport)
	}
	return c.server.Stop()
}
