package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	etcdkubernetes "go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	registry "k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"

	"github.com/gardenlite/gardenlite/internal/datastore"
)

// probeTimeout is how long the datastore may take to answer a health check.
const probeTimeout = 2 * time.Second

// sharedConnection is the only connection of a server to the datastore, shared by all resources. Kubernetes has one for
// each resource, which with kine in the same process is most of the cost of a server.
type sharedConnection struct {
	client *etcdkubernetes.Client
	dense  bool
	usage  occupancy
}

// connect connects to a datastore of this process. For an external etcd, which has certificates and needs compaction,
// it returns nil: Kubernetes' own connections are used.
func (s *Server) connect(ctx context.Context) (*sharedConnection, error) {
	if !s.datastore.Kine {
		return nil, nil
	}
	client, err := s.datastore.NewClient(context.WithoutCancel(ctx), dialTimeout)
	if err != nil {
		return nil, fmt.Errorf("connecting to the datastore: %w", err)
	}
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	shared := &etcdkubernetes.Client{Client: client}
	shared.Kubernetes = shared
	return &sharedConnection{client: shared, dense: s.cfg.LowMemory}, nil
}

func (c *sharedConnection) close() {
	if c != nil {
		_ = c.client.Close() // Close returns the error that its context has been cancelled
	}
}

// addChecks adds the health and readiness checks that Kubernetes has for its own connections.
func (c *sharedConnection) addChecks(config *genericapiserver.Config, prefix string) {
	probe := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		return c.check(ctx, prefix)
	}
	config.AddHealthChecks(healthz.NamedGroupedCheck("etcd", "etcd", probe))
	config.AddReadyzChecks(healthz.NamedGroupedCheck("etcd-readiness", "etcd-readiness", probe))
}

// check returns an error if the datastore does not answer.
func (c *sharedConnection) check(ctx context.Context, prefix string) error {
	if _, err := c.client.Client.Get(ctx, path.Join("/", prefix, "health")); err != nil {
		return datastore.ErrNoAnswer
	}
	return nil
}

// share makes the resources of the getter use this connection, or Kubernetes' own if there is none.
func (c *sharedConnection) share(getter registry.RESTOptionsGetter) registry.RESTOptionsGetter {
	switch {
	case getter == nil:
		return nil
	case c == nil:
		return availableOptions{getter}
	}
	return availableOptions{&sharedOptions{getter, c}}
}

type sharedOptions struct {
	registry.RESTOptionsGetter
	connection *sharedConnection
}

// GetRESTOptions returns the options of a resource, with its storage on the shared connection.
func (o *sharedOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (registry.RESTOptions, error) {
	options, err := o.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	options.Decorator = o.connection.withCache
	if slices.Contains(uncached[resource.Group], resource.Resource) {
		options.Decorator = o.connection.withoutCache
	}
	if o.connection.dense {
		options.CountMetricPollPeriod = 0
	}
	return options, nil
}

// uncached are resources with few objects and few readers, by their groups, and Events, for which Kubernetes has no
// watch cache either: lists and watches read from the datastore. A watch cache takes memory, and wakes each second.
var uncached = map[string][]string{
	"": {
		"endpoints", "events", "limitranges", "persistentvolumeclaims", "persistentvolumes", "podtemplates",
		"replicationcontrollers", "resourcequotas",
	},
	"admissionregistration.k8s.io": {
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
	},
	"apps":                         {"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"},
	"autoscaling":                  {"horizontalpodautoscalers"},
	"batch":                        {"cronjobs", "jobs"},
	"certificates.k8s.io":          {"certificatesigningrequests", "clustertrustbundles", "podcertificaterequests"},
	"discovery.k8s.io":             {"endpointslices"},
	"events.k8s.io":                {"events"},
	"flowcontrol.apiserver.k8s.io": {"flowschemas", "prioritylevelconfigurations"},
	"networking.k8s.io":            {"ingressclasses", "ingresses", "ipaddresses", "networkpolicies", "servicecidrs"},
	"node.k8s.io":                  {"runtimeclasses"},
	"policy":                       {"poddisruptionbudgets"},
	"resource.k8s.io": {
		"deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices",
	},
	"scheduling.k8s.io": {"priorityclasses"},
	"storage.k8s.io": {
		"csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments",
		"volumeattributesclasses",
	},
}

// withoutCache returns the storage of a resource without a watch cache.
func (c *sharedConnection) withoutCache(config *storagebackend.ConfigForResource, resourcePrefix string, _ func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers) (
	storage.Interface, factory.DestroyFunc, error) {
	store, closeStore, err := c.store(config, resourcePrefix, newFunc, newListFunc)
	return direct{store}, closeStore, err
}

// direct is the storage of a resource without a watch cache. Its watches have their own gRPC stream: on the stream of
// the caches they would receive the progress notifications that the caches request, and pass them to clients that did
// not ask for bookmarks.
type direct struct{ storage.Interface }

func (d direct) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	return d.Interface.Watch(metadata.AppendToOutgoingContext(ctx, "source", "direct"), key, opts)
}

func (c *sharedConnection) store(config *storagebackend.ConfigForResource, resourcePrefix string, newFunc,
	newListFunc func() runtime.Object) (storage.Interface, factory.DestroyFunc, error) {
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(c.client, nil, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix, config.GroupResource,
		transformer, config.LeaseManagerConfig, etcd3.NewDefaultDecoder(config.Codec, versioner), versioner)
	if err != nil {
		return nil, nil, err
	}
	return c.recordUse(store, config.GroupResource, config.Prefix, resourcePrefix), sync.OnceFunc(store.Close), nil
}

// withCache returns the storage of a resource with a watch cache.
func (c *sharedConnection) withCache(config *storagebackend.ConfigForResource, resourcePrefix string,
	keyFunc func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, triggers storage.IndexerFuncs,
	indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
	store, closeStore, err := c.store(config, resourcePrefix, newFunc, newListFunc)
	if err != nil {
		return nil, nil, err
	}
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: store, Versioner: storage.APIObjectVersioner{}, GroupResource: config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      resourcePrefix, KeyFunc: keyFunc, NewFunc: newFunc, NewListFunc: newListFunc, GetAttrsFunc: attributes,
		IndexerFuncs: triggers, Indexers: indexers, Codec: config.Codec,
	})
	if err != nil {
		closeStore()
		return nil, nil, err
	}
	delegator := cacher.NewCacheDelegator(cached, store)
	return delegator, sync.OnceFunc(func() {
		delegator.Stop()
		cached.Stop()
		closeStore()
	}), nil
}
