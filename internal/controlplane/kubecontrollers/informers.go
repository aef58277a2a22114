package kubecontrollers

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

const resync = 12 * time.Hour

// sharedInformers are the informers that the controllers share. Secrets and ConfigMaps may be many and large, so only
// those that a controller reads are cached in full.
type sharedInformers struct {
	// all has all objects of a kind.
	all informers.SharedInformerFactory
	// tokens has the Secrets with tokens of service accounts, bootstrapTokens those with bootstrap tokens.
	tokens, bootstrapTokens informers.SharedInformerFactory
	// rootCAs has the ConfigMaps with the root certificate, public those of kube-public.
	rootCAs, public informers.SharedInformerFactory
	// metadata has all objects of a kind, reduced to the metadata that the garbage collector reads.
	metadata metadatainformer.SharedInformerFactory
	// idleInformers are the informers of resources without objects.
	idleInformers *idleInformers
	// ctx is the context of the controllers while they run.
	ctx context.Context
}

func newSharedInformers(c *client, idle func(schema.GroupResource, string, func()) bool) sharedInformers {
	some := func(namespace, field, value string) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(c, resync, informers.WithTransform(ctrlcache.TransformStripManagedFields()),
			informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(options *metav1.ListOptions) {
				if field != "" {
					options.FieldSelector = fields.OneTermEqualSelector(field, value).String()
				}
			}))
	}
	return sharedInformers{
		idleInformers:   &idleInformers{client: c.metadata, idle: idle},
		all:             some(metav1.NamespaceAll, "", ""),
		tokens:          some(metav1.NamespaceAll, "type", string(corev1.SecretTypeServiceAccountToken)),
		bootstrapTokens: some(metav1.NamespaceSystem, "type", string(bootstrapapi.SecretTypeBootstrapToken)),
		rootCAs:         some(metav1.NamespaceAll, "metadata.name", rootcacertpublisher.RootCACertConfigMapName),
		public:          some(metav1.NamespacePublic, "", ""),
		metadata:        metadatainformer.NewSharedInformerFactoryWithOptions(c.metadata, resync, metadatainformer.WithTransform(dropUnowned)),
	}
}

// factory is the common interface of client-go's informer factories.
type factory interface {
	Start(<-chan struct{})
	Shutdown()
}

func (s *sharedInformers) typed() []informers.SharedInformerFactory {
	return []informers.SharedInformerFactory{s.all, s.tokens, s.bootstrapTokens, s.rootCAs, s.public}
}

func (s *sharedInformers) factories() []factory {
	all := []factory{s.metadata}
	for _, f := range s.typed() {
		all = append(all, f)
	}
	return all
}

func (s *sharedInformers) start(ctx context.Context) {
	s.ctx = ctx
	s.idleInformers.start(ctx)
	for _, f := range s.factories() {
		startFactory(ctx, f)
	}
}

// startFactory starts a factory with a context if it can: with a channel, each of its many contexts has a goroutine
// that waits for the channel.
func startFactory(ctx context.Context, f factory) {
	if f, ok := f.(interface{ StartWithContext(context.Context) }); ok {
		f.StartWithContext(ctx)
		return
	}
	f.Start(ctx.Done())
}

// waitForSync waits for the informers of the controllers, but not for those that the garbage collector adds.
func (s *sharedInformers) waitForSync(ctx context.Context) {
	for _, f := range s.typed() {
		f.WaitForCacheSync(ctx.Done())
	}
}

func (s *sharedInformers) shutdown() {
	s.idleInformers.shutdown()
	for _, f := range s.factories() {
		f.Shutdown()
	}
}

// inFull are the resources whose informers have whole objects: because quota counts by the content of the objects, or
// because a controller watches all of them anyway, so that one watch serves both.
var inFull = sets.New(
	corev1.SchemeGroupVersion.WithResource("pods"),
	corev1.SchemeGroupVersion.WithResource("services"),
	corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	corev1.SchemeGroupVersion.WithResource("nodes"),
	coordinationv1.SchemeGroupVersion.WithResource("leases"),
	appsv1.SchemeGroupVersion.WithResource("daemonsets"),
	resourcev1.SchemeGroupVersion.WithResource("resourceclaims"),
	resourcev1.SchemeGroupVersion.WithResource("deviceclasses"),
	corev1.SchemeGroupVersion.WithResource("namespaces"),
	corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
	corev1.SchemeGroupVersion.WithResource("resourcequotas"),
	schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
)

// ForResource and Start implement informerfactory.InformerFactory for the controllers that watch every resource.
func (s *sharedInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	if inFull.Has(resource) {
		return s.all.ForResource(resource)
	}
	if idle := s.idleInformers.forResource(resource); idle != nil {
		return idle, nil
	}
	return s.metadata.ForResource(resource), nil
}

// Start starts the informers that were added since the last call. They run until the controllers end, as their users
// do.
func (s *sharedInformers) Start(<-chan struct{}) {
	startFactory(s.ctx, s.all)
	startFactory(s.ctx, s.metadata)
}

// dropUnowned removes from metadata everything that the garbage collector does not need.
func dropUnowned(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
		m.SetAnnotations(nil)
		m.SetLabels(nil)
	}
	return obj, nil
}
