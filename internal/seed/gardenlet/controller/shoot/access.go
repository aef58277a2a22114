package shoot

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/shootsecrets"
)

const (
	// gardenletUser and gardenletGroup are the user and group of the gardenlet in a shoot.
	gardenletUser  = "gardener.cloud:gardenlet"
	gardenletGroup = "system:masters"
	// accessLife is the validity of the gardenlet's client certificate, which is created for a single operation.
	accessLife = time.Hour
	// accessTimeout is how long a request to a shoot may take.
	accessTimeout = 30 * time.Second
)

// ShootClient is a client for the API of a shoot.
type ShootClient struct {
	client.Client
	// Metadata reads and patches the metadata of objects of any resource.
	Metadata metadata.Interface
	// Resources returns the resources that the API server serves.
	Resources func() ([]*metav1.APIResourceList, error)
	// Close closes the connections of the client.
	Close func()
}

// shootAccess holds the client with which an operation accesses the shoot.
type shootAccess struct{ shootClient *ShootClient }

func (a *shootAccess) close() {
	if a.shootClient != nil {
		a.shootClient.Close()
		a.shootClient = nil
	}
}

// connect creates a client for the shoot, with a certificate that is used for this operation only.
func (b *botanist) connect(context.Context) error {
	certificate, key, err := b.authorities[shootsecrets.CAClient].Authority().Client(
		gardenletUser, []string{gardenletGroup}, b.Clock.Now(), accessLife)
	if err != nil {
		return err
	}
	config := &rest.Config{Host: b.url(), QPS: -1, Timeout: accessTimeout, TLSClientConfig: rest.TLSClientConfig{
		CAData: b.bundle(), CertData: certificate, KeyData: key,
	}}
	made, err := b.newShootClient(config)
	if err != nil {
		return fmt.Errorf("making a client for the shoot at %s: %w", b.url(), err)
	}
	b.close()
	b.shootClient = made
	return nil
}

func (r *Reconciler) newShootClient(config *rest.Config) (*ShootClient, error) {
	if r.NewShootClient != nil {
		return r.NewShootClient(config)
	}
	return newShootClient(config)
}

// shootScheme and shootMapper contain the kinds that the gardenlet writes in shoots, so that clients need no discovery.
var shootScheme, shootMapper = func() (*runtime.Scheme, meta.RESTMapper) {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme) // of types that are compiled in
	_ = rbacv1.AddToScheme(scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[string]meta.RESTScope{
		"Namespace": meta.RESTScopeRoot, "Node": meta.RESTScopeRoot, "ConfigMap": meta.RESTScopeNamespace, "Secret": meta.RESTScopeNamespace,
	} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), scope)
	}
	for kind, scope := range map[string]meta.RESTScope{
		"ClusterRole": meta.RESTScopeRoot, "ClusterRoleBinding": meta.RESTScopeRoot, "Role": meta.RESTScopeNamespace,
		"RoleBinding": meta.RESTScopeNamespace,
	} {
		mapper.Add(rbacv1.SchemeGroupVersion.WithKind(kind), scope)
	}
	return scheme, mapper
}()

// newShootClient creates a client with a transport of its own: client-go never releases the transports that it shares
// between clients, and each operation has another certificate.
func newShootClient(config *rest.Config) (*ShootClient, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, TLSHandshakeTimeout: accessTimeout,
		IdleConnTimeout: accessTimeout}
	httpClient := &http.Client{Transport: transport, Timeout: config.Timeout}
	made, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: shootScheme, Mapper: shootMapper})
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, err
	}
	return &ShootClient{Client: made, Metadata: objects, Close: transport.CloseIdleConnections,
		Resources: func() ([]*metav1.APIResourceList, error) {
			_, resources, err := discoverer.ServerGroupsAndResources()
			if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // API groups of users may be unavailable
				return nil, err
			}
			return resources, nil
		}}, nil
}
