package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	registry "k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
	"github.com/gardenlite/gardenlite/internal/httpserver"
)

// Extension adds further API groups to the chain, between kube-apiserver and aggregator.
type Extension interface {
	// Scheme returns the scheme with the types of the groups.
	Scheme() *runtime.Scheme
	// OpenAPIDefinitions returns the OpenAPI models of the groups.
	OpenAPIDefinitions(openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition
	// Priorities returns the positions of the group versions in discovery. A group version without a priority is not
	// served.
	Priorities() map[schema.GroupVersion]controlplaneapiserver.APIServicePriority
	// New returns the server of the groups.
	New(ExtensionInput) (*genericapiserver.GenericAPIServer, error)
}

// ExtensionInput is the input of Extension.New.
type ExtensionInput struct {
	// Generic is a copy of the kube-apiserver's configuration without its hooks and storage. The Extension may modify
	// it.
	Generic genericapiserver.Config
	// Etcd are the options for the storage. The Extension has to set the codec.
	Etcd serveroptions.EtcdOptions
	// ShareStorage makes the resources of a getter use the kube-apiserver's connection to the datastore.
	ShareStorage func(registry.RESTOptionsGetter) registry.RESTOptionsGetter
	// Informers are the informers of the kube-apiserver.
	Informers informers.SharedInformerFactory
	// Delegate serves the requests that the groups do not.
	Delegate genericapiserver.DelegationTarget
}

type chain struct {
	run     func(context.Context) error
	handler http.Handler
}

// building is held while a chain is built: the options and registries of Kubernetes are shared by all servers of the
// process, and are not safe for concurrent use.
var building sync.Mutex

func newChain(ctx context.Context, s *Server, listener net.Listener) (*chain, error) {
	building.Lock()
	defer building.Unlock()
	opts, err := serverOptions(ctx, s, listener)
	if err != nil {
		return nil, err
	}
	schemes := []*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme}
	definitions := openapicommon.GetOpenAPIDefinitions(kubeDefinitions)
	priorities := servedPriorities()
	if s.cfg.DialNode != nil {
		schemes = append(schemes, metricsScheme)
		priorities[metricsv1beta1.SchemeGroupVersion] = metricsPriority
	}
	if ext := s.cfg.Extension; ext != nil {
		schemes = append(schemes, ext.Scheme())
		definitions = func(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
			merged := kubeDefinitions(ref)
			maps.Copy(merged, ext.OpenAPIDefinitions(ref))
			return merged
		}
		maps.Copy(priorities, ext.Priorities())
	}

	common, err := newGeneric(opts.CompletedOptions, schemes, definitions, s.connection)
	if err != nil {
		return nil, fmt.Errorf("configuring the API server: %w", err)
	}
	generic, versionedInformers := common.config, common.informers
	if s.cfg.Authenticator != nil {
		generic.Authentication.Authenticator = s.cfg.Authenticator(generic.Authentication.Authenticator)
	}
	generic.EffectiveVersion = effectiveVersion{generic.EffectiveVersion, s.cfg.KubernetesVersion}
	for name := range bootstrapHooks {
		generic.DisabledPostStartHooks.Insert(name)
	}

	kube, err := newKubeConfig(opts, common, s.cfg.Services, s.servesPod())
	if err != nil {
		return nil, fmt.Errorf("configuring the API server: %w", err)
	}
	authInfo := webhook.NewDefaultAuthenticationInfoResolverWrapper(kube.ControlPlane.ProxyTransport, generic.EgressSelector,
		generic.LoopbackClientConfig, generic.TracerProvider)
	extensions, err := controlplaneapiserver.CreateAPIExtensionsConfig(*generic, versionedInformers, kube.initializers,
		opts.CompletedOptions, opts.MasterCount, kube.services, authInfo)
	if err != nil {
		return nil, fmt.Errorf("configuring the API server for custom resources: %w", err)
	}
	extensions.GenericConfig.RESTOptionsGetter = s.connection.share(extensions.GenericConfig.RESTOptionsGetter)
	extensions.ExtraConfig.CRDRESTOptionsGetter = s.connection.share(extensions.ExtraConfig.CRDRESTOptionsGetter)
	aggregator, err := controlplaneapiserver.CreateAggregatorConfig(*generic, opts.CompletedOptions, versionedInformers,
		kube.services, kube.ControlPlane.ProxyTransport, kube.ControlPlane.Extra.PeerProxy, kube.initializers)
	if err != nil {
		return nil, fmt.Errorf("configuring the aggregator: %w", err)
	}
	aggregator.GenericConfig.RESTOptionsGetter = s.connection.share(aggregator.GenericConfig.RESTOptionsGetter)
	aggregator.GenericConfig.DisabledPostStartHooks = sets.NewString()
	filters := aggregator.GenericConfig.BuildHandlerChainFunc
	aggregator.GenericConfig.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		handler = withReviewedWatches(quirks.WithClientFaults(handler), c.Authorization.Authorizer, s.cfg.WatchReview, s.cfg.Clock,
			s.cfg.Revocation)
		return httpserver.WithEarlyResponse(filters(handler, c))
	}
	// See serveOpenAPI and serveCustomOpenAPI; the configurations of the aggregator and the custom resources are copies.
	generic.SkipOpenAPIInstallation, extensions.GenericConfig.SkipOpenAPIInstallation = true, true
	in := ExtensionInput{Generic: *generic, Etcd: *opts.CompletedOptions.Etcd, ShareStorage: s.connection.share, Informers: versionedInformers}

	extensionsServer, err := extensions.Complete().New(genericapiserver.NewEmptyDelegateWithCustomHandler(
		notfoundhandler.New(generic.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)))
	if err != nil {
		return nil, fmt.Errorf("making the API server for custom resources: %w", err)
	}
	crdClient, err := clientset.NewForConfig(generic.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server for custom resources: %w", err)
	}
	crds := extensionsServer.Informers.Apiextensions().V1().CustomResourceDefinitions()
	if err := errors.Join(quirks.RetryDeletions(crds, crdClient, quirks.RetryAfter),
		quirks.EstablishAfterStart(crds, crdClient, quirks.RetryAfter)); err != nil {
		return nil, fmt.Errorf("watching custom resource definitions: %w", err)
	}
	serveCustomOpenAPI(extensionsServer, generic.OpenAPIConfig, generic.OpenAPIV3Config)
	kubeServer, err := kube.Complete().New(extensionsServer.GenericAPIServer)
	if err != nil {
		return nil, fmt.Errorf("making the API server: %w", err)
	}
	delegate := kubeServer.ControlPlane.GenericAPIServer
	if s.cfg.DialNode != nil {
		group, err := newMetricsGroup(generic.LoopbackClientConfig, s.cfg.Clock, logger(s.cfg.Name))
		if err != nil {
			return nil, err
		}
		if err := delegate.InstallAPIGroup(group); err != nil {
			return nil, fmt.Errorf("adding the API of metrics: %w", err)
		}
	}
	serveOpenAPI(delegate, generic.OpenAPIConfig, generic.OpenAPIV3Config)
	if s.cfg.Extension != nil {
		in.Generic.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
		in.Generic.RESTOptionsGetter = nil
		in.Etcd.SkipHealthEndpoints = true
		in.Delegate = delegate
		if delegate, err = s.cfg.Extension.New(in); err != nil {
			return nil, fmt.Errorf("making the API server for further groups: %w", err)
		}
		serveOpenAPI(delegate, generic.OpenAPIConfig, generic.OpenAPIV3Config)
	}
	aggregatorServer, err := controlplaneapiserver.CreateAggregatorServer(aggregator.Complete(), delegate, crds, true, priorities)
	if err != nil {
		return nil, fmt.Errorf("making the aggregator: %w", err)
	}
	aggregatorServer.GenericAPIServer.ShutdownTimeout = shutdownTimeout
	if err := addBootstrapHooks(aggregatorServer.GenericAPIServer); err != nil {
		return nil, err
	}
	prepared, err := aggregatorServer.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("preparing the API server: %w", err)
	}
	for _, server := range []*genericapiserver.GenericAPIServer{extensionsServer.GenericAPIServer,
		kubeServer.ControlPlane.GenericAPIServer, delegate, aggregatorServer.GenericAPIServer} {
		quirks.SharePatterns(server.Handler.GoRestfulContainer)
	}
	return &chain{run: prepared.Run, handler: aggregatorServer.GenericAPIServer.Handler}, nil
}

// servedPriorities returns the positions of Kubernetes' groups in discovery: those of a generic control plane, and
// those that the kube-apiserver adds (its table in cmd/kube-apiserver/app is not exported).
func servedPriorities() map[schema.GroupVersion]controlplaneapiserver.APIServicePriority {
	priorities := controlplaneapiserver.DefaultGenericAPIServicePriorities()
	for gv, priority := range map[schema.GroupVersion]controlplaneapiserver.APIServicePriority{
		{Group: "apps", Version: "v1"}:              {Group: 17800, Version: 15},
		{Group: "autoscaling", Version: "v1"}:       {Group: 17500, Version: 15},
		{Group: "autoscaling", Version: "v2"}:       {Group: 17500, Version: 30},
		{Group: "batch", Version: "v1"}:             {Group: 17400, Version: 15},
		{Group: "networking.k8s.io", Version: "v1"}: {Group: 17200, Version: 15},
		{Group: "policy", Version: "v1"}:            {Group: 17100, Version: 15},
		{Group: "storage.k8s.io", Version: "v1"}:    {Group: 16800, Version: 15},
		{Group: "scheduling.k8s.io", Version: "v1"}: {Group: 16600, Version: 15},
		{Group: "node.k8s.io", Version: "v1"}:       {Group: 16300, Version: 15},
		{Group: "resource.k8s.io", Version: "v1"}:   {Group: 16200, Version: 21},
	} {
		priorities[gv] = priority
	}
	return priorities
}
