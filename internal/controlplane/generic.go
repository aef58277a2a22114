package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/filters"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gardenlite/gardenlite/internal/controlplane/certwatch"
)

const informerResync = 10 * time.Minute

// generic is the configuration that the servers of the chain share.
type generic struct {
	config    *genericapiserver.Config
	informers informers.SharedInformerFactory
	storage   *serverstorage.DefaultStorageFactory
}

// newGeneric applies the options to a new configuration, in the order of their dependencies. It does the same as
// Kubernetes' BuildGenericConfig, which creates two RSA keys for the connection of the server to itself, a large part
// of a start; newGeneric creates an elliptic curve key. It leaves out egress and tracing, which no flag here enables.
func newGeneric(opts options.CompletedOptions, schemes []*runtime.Scheme, definitions openapicommon.GetOpenAPIDefinitions,
	shared *sharedConnection) (*generic, error) {
	c := genericapiserver.NewConfig(legacyscheme.Codecs)
	c.Flagz = opts.Flagz
	c.MergedResourceConfig = controlplane.DefaultAPIResourceConfigSource()
	if err := opts.GenericServerRunOptions.ApplyTo(c); err != nil {
		return nil, err
	}
	if err := opts.SecureServing.SecureServingOptions.ApplyTo(&c.SecureServing); err != nil {
		return nil, err
	}
	serving := opts.SecureServing.ServerCert.CertKey
	c.SecureServing.Cert = certwatch.Cert(c.SecureServing.Cert, serving.CertFile, serving.KeyFile)
	if err := addLoopback(c); err != nil {
		return nil, fmt.Errorf("preparing the connection of the server to itself: %w", err)
	}
	client, err := kubernetes.NewForConfig(c.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	g := &generic{config: c, informers: informers.NewSharedInformerFactoryWithOptions(client, informerResync,
		informers.WithTransform(cache.TransformStripManagedFields()))}
	if err := opts.Features.ApplyTo(c, client, g.informers); err != nil {
		return nil, err
	}
	if err := opts.APIEnablement.ApplyTo(c, c.MergedResourceConfig, legacyscheme.Scheme); err != nil {
		return nil, err
	}
	addOpenAPI(c, schemes, definitions)
	c.LongRunningFunc = filters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
	if g.storage, err = addStorage(c, opts, shared); err != nil {
		return nil, err
	}
	if err := addAccess(c, opts, client, g.informers); err != nil {
		return nil, err
	}
	c.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	return g, nil
}

func addOpenAPI(c *genericapiserver.Config, schemes []*runtime.Scheme, definitions openapicommon.GetOpenAPIDefinitions) {
	definitions = openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(definitions)
	namer := openapinamer.NewDefinitionNamer(schemes...)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.OpenAPIConfig.Info.Title, c.OpenAPIV3Config.Info.Title = "Kubernetes", "Kubernetes"
}

func addStorage(c *genericapiserver.Config, opts options.CompletedOptions, shared *sharedConnection) (
	*serverstorage.DefaultStorageFactory, error) {
	opts.Etcd.StorageConfig.Transport.TracerProvider = c.TracerProvider
	config := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(c.EffectiveVersion)
	config.APIResourceConfig = c.MergedResourceConfig
	config.DefaultResourceEncoding.SetEffectiveVersion(c.EffectiveVersion)
	factory, err := config.Complete(opts.Etcd).New()
	if err != nil {
		return nil, err
	}
	factory.StorageConfig.StorageObjectCountTracker = c.StorageObjectCountTracker
	etcd := *opts.Etcd
	if shared != nil {
		etcd.SkipHealthEndpoints = true
		shared.addChecks(c, etcd.StorageConfig.Prefix)
	}
	if err := etcd.ApplyWithStorageFactoryTo(factory, c); err != nil {
		return nil, err
	}
	c.RESTOptionsGetter = shared.share(c.RESTOptionsGetter)
	return factory, nil
}

// addAccess adds authentication, authorization and audit.
func addAccess(c *genericapiserver.Config, opts options.CompletedOptions, client kubernetes.Interface,
	shared informers.SharedInformerFactory) error {
	ctx := wait.ContextForChannel(c.DrainedNotify())
	err := opts.Authentication.ApplyTo(ctx, &c.Authentication, c.SecureServing, c.EgressSelector, c.OpenAPIConfig,
		c.OpenAPIV3Config, client, shared, c.APIServerID)
	if err != nil {
		return err
	}
	c.SecureServing.ClientCA = certwatch.CA(c.SecureServing.ClientCA, opts.Authentication.ClientCert.ClientCA,
		opts.Authentication.RequestHeader.ClientCAFile)
	c.Authorization.Authorizer, c.RuleResolver, _,
		err = controlplaneapiserver.BuildAuthorizer(ctx, opts, c.EgressSelector, c.APIServerID, shared)
	if err != nil {
		return err
	}
	return opts.Audit.ApplyTo(c)
}

// addLoopback configures the connection of the server to itself, with its own server name and certificate.
func addLoopback(c *genericapiserver.Config) error {
	const name = genericapiserver.LoopbackClientServerNameOverride
	certPEM, keyPEM, err := selfSigned(name)
	if err != nil {
		return err
	}
	provider, err := dynamiccertificates.NewStaticSNICertKeyContent("loopback", certPEM, keyPEM, name)
	if err != nil {
		return err
	}
	c.SecureServing.SNICerts = append([]dynamiccertificates.SNICertKeyContentProvider{provider}, c.SecureServing.SNICerts...)
	if c.LoopbackClientConfig, err = c.SecureServing.NewLoopbackClientConfig(uuid.NewString(), certPEM); err != nil {
		return err
	}
	c.LoopbackClientConfig.ContentType = runtime.ContentTypeProtobuf
	c.LoopbackClientConfig.DisableCompression = true
	return nil
}

// selfSigned returns a serving certificate that only this process trusts. Each start creates a new one.
func selfSigned(name string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	self, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name, NotBefore: time.Now().Add(-time.Hour)}, key)
	if err != nil {
		return nil, nil, err
	}
	certPEM, err = cert.EncodeCertificates(self)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return certPEM, keyPEM, err
}
