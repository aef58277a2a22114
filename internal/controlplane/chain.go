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
	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
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
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/gardenlite/gardenlite/internal/controlplane/certwatch"
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

// newChain builds the chain as Kubernetes' CreateServerChain does: from options over a configuration to servers, each of which
// delegates to the one before.
func newChain(ctx context.Context, s *Server, listener net.Listener) (*chain, error) {
	building.Lock()
	defer building.Unlock()
	opts, err := serverOptions(ctx, s, listener)
	if err != nil {
		return nil, err
	}
	config, err := newChainConfig(s, opts)
	if err != nil {
		return nil, err
	}
	custom, err := config.newCustomResources()
	if err != nil {
		return nil, err
	}
	kube, err := config.newKube(custom.GenericAPIServer)
	if err != nil {
		return nil, err
	}
	extension, err := config.newExtension(kube)
	if err != nil {
		return nil, err
	}
	aggregator, err := config.newAggregator(extension, custom.Informers.Apiextensions().V1().CustomResourceDefinitions())
	if err != nil {
		return nil, err
	}
	prepared, err := aggregator.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("preparing the API server: %w", err)
	}
	for _, server := range []*genericapiserver.GenericAPIServer{custom.GenericAPIServer, kube, extension, aggregator.GenericAPIServer} {
		quirks.SharePatterns(server.Handler.GoRestfulContainer)
	}
	return &chain{run: prepared.Run, handler: aggregator.GenericAPIServer.Handler}, nil
}

// apiGroups are the API groups that a chain serves.
type apiGroups struct {
	schemes     []*runtime.Scheme
	definitions openapicommon.GetOpenAPIDefinitions
	priorities  map[schema.GroupVersion]controlplaneapiserver.APIServicePriority
}

func (s *Server) apiGroups() apiGroups {
	groups := apiGroups{
		schemes:     []*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme},
		definitions: kubeDefinitions, priorities: servedPriorities(),
	}
	if s.cfg.DialNode != nil {
		groups.schemes = append(groups.schemes, metricsScheme)
		groups.priorities[metricsv1beta1.SchemeGroupVersion] = metricsPriority
	}
	if ext := s.cfg.Extension; ext != nil {
		groups.schemes = append(groups.schemes, ext.Scheme())
		groups.definitions = func(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
			merged := kubeDefinitions(ref)
			maps.Copy(merged, ext.OpenAPIDefinitions(ref))
			return merged
		}
		maps.Copy(groups.priorities, ext.Priorities())
	}
	return groups
}

// chainConfig is the configuration of the servers of a chain.
type chainConfig struct {
	server     *Server
	groups     apiGroups
	generic    *genericapiserver.Config
	custom     *apiextensionsapiserver.Config
	kube       *kubeConfig
	aggregator *aggregatorapiserver.Config
	// extension is the input of the Extension, but for its Delegate.
	extension ExtensionInput
}

func newChainConfig(s *Server, opts options.CompletedOptions) (*chainConfig, error) {
	c := &chainConfig{server: s, groups: s.apiGroups()}
	common, err := newGeneric(opts.CompletedOptions, c.groups.schemes, c.groups.definitions, s.connection)
	if err != nil {
		return nil, fmt.Errorf("configuring the API server: %w", err)
	}
	c.generic = common.config
	if s.cfg.NodeAgents {
		c.generic.Authorization.Authorizer = withNodeAgents(c.generic.Authorization.Authorizer)
	}
	if s.cfg.Authenticator != nil {
		c.generic.Authentication.Authenticator = s.cfg.Authenticator(c.generic.Authentication.Authenticator)
	}
	c.generic.EffectiveVersion = effectiveVersion{c.generic.EffectiveVersion, s.cfg.KubernetesVersion}
	for name := range bootstrapHooks {
		c.generic.DisabledPostStartHooks.Insert(name)
	}
	if c.kube, err = newKubeConfig(opts, common, &s.cfg, s.servesPod()); err != nil {
		return nil, fmt.Errorf("configuring the API server: %w", err)
	}
	wrapped := webhook.NewDefaultAuthenticationInfoResolverWrapper(c.kube.ControlPlane.ProxyTransport,
		c.generic.EgressSelector,
		c.generic.LoopbackClientConfig, c.generic.TracerProvider)
	authInfo := func(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return c.kube.services.discreet(wrapped(delegate))
	}
	c.custom, err = controlplaneapiserver.CreateAPIExtensionsConfig(*c.generic, common.informers, c.kube.initializers,
		opts.CompletedOptions, opts.MasterCount, c.kube.services, authInfo)
	if err != nil {
		return nil, fmt.Errorf("configuring the API server for custom resources: %w", err)
	}
	c.custom.GenericConfig.RESTOptionsGetter = s.connection.share(c.custom.GenericConfig.RESTOptionsGetter)
	c.custom.ExtraConfig.CRDRESTOptionsGetter = s.connection.share(c.custom.ExtraConfig.CRDRESTOptionsGetter)
	if err := c.configureAggregator(opts, common.informers); err != nil {
		return nil, fmt.Errorf("configuring the aggregator: %w", err)
	}
	// See serveOpenAPI and serveCustomOpenAPI; the configurations of the aggregator and the custom resources are copies.
	c.generic.SkipOpenAPIInstallation, c.custom.GenericConfig.SkipOpenAPIInstallation = true, true
	c.extension = ExtensionInput{Generic: *c.generic, Etcd: *opts.CompletedOptions.Etcd, ShareStorage: s.connection.share,
		Informers: common.informers}
	c.extension.Generic.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
	c.extension.Generic.RESTOptionsGetter = nil
	c.extension.Etcd.SkipHealthEndpoints = true
	return c, nil
}

func (c *chainConfig) configureAggregator(opts options.CompletedOptions, informers informers.SharedInformerFactory) (err error) {
	c.aggregator, err = controlplaneapiserver.CreateAggregatorConfig(*c.generic, opts.CompletedOptions, informers,
		c.kube.services, c.kube.ControlPlane.ProxyTransport, c.kube.ControlPlane.Extra.PeerProxy, c.kube.initializers)
	if err != nil {
		return err
	}
	s, generic := c.server, c.aggregator.GenericConfig
	generic.RESTOptionsGetter = s.connection.share(generic.RESTOptionsGetter)
	generic.DisabledPostStartHooks = sets.NewString()
	filters := generic.BuildHandlerChainFunc
	generic.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		handler = withUsersInTime(handler, s.pki, s.cfg.Clock)
		handler = withReviewedWatches(handler, config.Authorization.Authorizer, s.cfg.WatchReview, s.cfg.Clock,
			s.cfg.Revocation)
		return httpserver.WithEarlyResponse(filters(handler, config))
	}
	return nil
}

// newCustomResources makes the last server of the chain, which delegates to nothing.
func (c *chainConfig) newCustomResources() (*apiextensionsapiserver.CustomResourceDefinitions, error) {
	server, err := c.custom.Complete().New(genericapiserver.NewEmptyDelegateWithCustomHandler(
		notfoundhandler.New(c.generic.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)))
	if err != nil {
		return nil, fmt.Errorf("making the API server for custom resources: %w", err)
	}
	client, err := clientset.NewForConfig(c.generic.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server for custom resources: %w", err)
	}
	crds := server.Informers.Apiextensions().V1().CustomResourceDefinitions()
	if err := errors.Join(quirks.RetryDeletions(crds, client, quirks.RetryAfter),
		quirks.EstablishAfterStart(crds, client, quirks.RetryAfter)); err != nil {
		return nil, fmt.Errorf("watching custom resource definitions: %w", err)
	}
	serveCustomOpenAPI(server, c.generic.OpenAPIConfig, c.generic.OpenAPIV3Config)
	return server, nil
}

// newKube makes the server of Kubernetes' own groups, and of metrics.
func (c *chainConfig) newKube(delegate genericapiserver.DelegationTarget) (*genericapiserver.GenericAPIServer, error) {
	kube, err := c.kube.Complete().New(delegate)
	if err != nil {
		return nil, fmt.Errorf("making the API server: %w", err)
	}
	server := kube.ControlPlane.GenericAPIServer
	if c.server.cfg.DialNode != nil {
		group, err := newMetricsGroup(c.generic.LoopbackClientConfig, c.server.cfg.Clock, logger(c.server.cfg.Name))
		if err != nil {
			return nil, err
		}
		if err := server.InstallAPIGroup(group); err != nil {
			return nil, fmt.Errorf("adding the API of metrics: %w", err)
		}
	}
	serveOpenAPI(server, c.generic.OpenAPIConfig, c.generic.OpenAPIV3Config)
	return server, nil
}

// newExtension makes the server of the Extension. Without one it returns the delegate.
func (c *chainConfig) newExtension(delegate *genericapiserver.GenericAPIServer) (*genericapiserver.GenericAPIServer, error) {
	if c.server.cfg.Extension == nil {
		return delegate, nil
	}
	input := c.extension
	input.Delegate = delegate
	server, err := c.server.cfg.Extension.New(input)
	if err != nil {
		return nil, fmt.Errorf("making the API server for further groups: %w", err)
	}
	serveOpenAPI(server, c.generic.OpenAPIConfig, c.generic.OpenAPIV3Config)
	return server, nil
}

// newAggregator makes the first server of the chain.
func (c *chainConfig) newAggregator(delegate *genericapiserver.GenericAPIServer,
	crds crdinformers.CustomResourceDefinitionInformer) (*aggregatorapiserver.APIAggregator, error) {
	server, err := controlplaneapiserver.CreateAggregatorServer(c.aggregator.Complete(), delegate, crds, true, c.groups.priorities)
	if err != nil {
		return nil, fmt.Errorf("making the aggregator: %w", err)
	}
	server.GenericAPIServer.ShutdownTimeout = shutdownTimeout
	files := []string{c.server.pki.FrontProxyClientCertFile(), c.server.pki.FrontProxyClientKeyFile()}
	quirks.ReplaceHook(server.GenericAPIServer, quirks.ReloadProxyCertificate, certwatch.Hook(files...))
	return server, addBootstrapHooks(server.GenericAPIServer)
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
