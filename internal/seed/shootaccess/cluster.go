package shootaccess

import (
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// idleTimeout closes unused connections.
const idleTimeout = 90 * time.Second

// Cluster gives access to the API server of one shoot.
type Cluster struct {
	// Config has the address and credentials, HTTP is the client that all requests use.
	Config *rest.Config
	HTTP   *http.Client
	// Client reads and writes objects of the shoot without a cache.
	Client client.Client
}

// NewCluster uses a transport of its own, because client-go never releases the transports that it creates. The caller closes
// the connections of the HTTP client. The client knows the common kinds, or discovers all that the shoot serves.
func NewCluster(config *rest.Config, clk clock.PassiveClock, allKinds bool) (*Cluster, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	tlsConfig.Time = func() time.Time { return landscapeclock.Real(clk) }
	transport := &http.Transport{
		TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout, MaxIdleConnsPerHost: 1,
		TLSHandshakeTimeout: config.Timeout,
	}
	cluster := &Cluster{Config: config, HTTP: &http.Client{Transport: transport, Timeout: config.Timeout}}
	options := client.Options{HTTPClient: cluster.HTTP, Scheme: scheme}
	if !allKinds {
		options.Mapper = mapper
	}
	cluster.Client, err = client.New(config, options)
	return cluster, err
}

// scheme and mapper are shared by the clients of all shoots, so that those for the common kinds need no discovery.
var scheme, mapper = common()

func common() (*runtime.Scheme, meta.RESTMapper) {
	s := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme,
		admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme)
	_ = builder.AddToScheme(s) // the types are known: nothing can fail
	m := meta.NewDefaultRESTMapper(s.PrioritizedVersionsAllGroups())
	for _, gv := range s.PrioritizedVersionsAllGroups() {
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
