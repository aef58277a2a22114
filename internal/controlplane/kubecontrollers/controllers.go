package kubecontrollers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
)

// resync is how often informers hand all objects to their handlers again.
const resync = 12 * time.Hour

// Config says where and as whom the controllers work.
type Config struct {
	// ClientConfig makes a client config for a component: a name for it, and the user and groups to be.
	ClientConfig func(component, user string, groups ...string) (*rest.Config, error)
	// Select says which controllers run, as --controllers of kube-controller-manager: "*", "name", "-name".
	Select []string
	// RootCA is published in every namespace.
	RootCA []byte
	// SigningCertFile and SigningKeyFile are the authority that signs certificate signing requests.
	SigningCertFile, SigningKeyFile string
	// ServiceAccountKeyFile signs service account tokens that are kept in Secrets.
	ServiceAccountKeyFile string
}

// sharedUser is who the informers that controllers share are, as in a kube-controller-manager.
const sharedUser = "system:kube-controller-manager"

// Controllers are controllers that are ready to run.
type Controllers struct {
	cfg       Config
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	// tokens has the Secrets of service account tokens, bootstrap those of bootstrap tokens: there may be many others, and
	// nobody here needs them.
	tokens, bootstrap informers.SharedInformerFactory
	metadata          metadatainformer.SharedInformerFactory
	mapper            *restmapper.DeferredDiscoveryRESTMapper
	// started is closed when the informers have been started.
	started chan struct{}
	runs    []func(context.Context)
	names   []string
}

// Names are all controllers there are.
func Names() []string {
	var names []string
	for _, c := range table {
		names = append(names, c.name)
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

// New makes the selected controllers. Nothing runs yet, and nothing is asked of the API server.
func New(ctx context.Context, cfg Config) (*Controllers, error) {
	config, err := cfg.ClientConfig("kube-controller-manager", sharedUser)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	protobuf := metadata.ConfigFor(config)
	metadataClient, err := metadata.NewForConfig(protobuf)
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &Controllers{
		cfg:       cfg,
		client:    client,
		informers: informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(dropManagedFields)),
		tokens:    secretsOfType(client, corev1.SecretTypeServiceAccountToken, metav1.NamespaceAll),
		bootstrap: secretsOfType(client, "bootstrap.kubernetes.io/token", metav1.NamespaceSystem),
		metadata:  metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync, metadatainformer.WithTransform(dropManagedFields)),
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		started:   make(chan struct{}),
	}
	for _, entry := range table {
		if !Selected(cfg.Select, entry.name) {
			continue
		}
		run, err := entry.new(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("making the controller %s: %w", entry.name, err)
		}
		c.runs, c.names = append(c.runs, run...), append(c.names, entry.name)
	}
	return c, nil
}

func secretsOfType(client kubernetes.Interface, kind corev1.SecretType, namespace string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithNamespace(namespace), informers.WithTransform(dropManagedFields),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("type", string(kind)).String()
		}))
}

func dropManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// Running are the names of the controllers that Run runs.
func (c *Controllers) Running() []string { return c.names }

// Run runs the controllers until the context is cancelled, and returns when all have ended.
func (c *Controllers) Run(ctx context.Context) {
	factories := []interface {
		Start(<-chan struct{})
		Shutdown()
	}{c.informers, c.tokens, c.bootstrap, c.metadata}
	var running sync.WaitGroup
	for _, run := range c.runs {
		running.Go(func() { run(ctx) })
	}
	for _, factory := range factories {
		factory.Start(ctx.Done())
	}
	close(c.started)
	running.Wait()
	<-ctx.Done()
	for _, factory := range factories {
		factory.Shutdown()
	}
}

// both has full objects where an informer is there anyway, and metadata of everything else.
func (c *Controllers) both() informerfactory.InformerFactory {
	return informerfactory.NewInformerFactory(c.informers, c.metadata)
}

// configOf is the client config of a controller, with the identity of its service account.
func (c *Controllers) configOf(serviceAccount string) (*rest.Config, error) {
	config, err := c.cfg.ClientConfig(serviceAccount, "system:serviceaccount:kube-system:"+serviceAccount,
		"system:serviceaccounts", "system:serviceaccounts:kube-system")
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

func (c *Controllers) clientOf(serviceAccount string) (kubernetes.Interface, error) {
	config, err := c.configOf(serviceAccount)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
