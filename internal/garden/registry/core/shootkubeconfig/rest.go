package shootkubeconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	gardenauthentication "github.com/gardener/gardener/pkg/apis/authentication"
	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/garden/scheme"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/authentication"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// DefaultMaxExpiration is the default of the longest validity of both kinds of kubeconfigs, as in Gardener.
const DefaultMaxExpiration = 24 * time.Hour

// viewerPrefix is the prefix of a viewer's name in a Shoot.
const viewerPrefix = "gardener.cloud:viewer:"

// maxUserName is the maximum length of a user name in a certificate, in bytes.
const maxUserName = 4096

// Options are an operator's settings. Zero values are replaced by defaults.
type Options struct {
	// MaxAdmin and MaxViewer are the longest validities of kubeconfigs for administrators and for viewers, from an
	// hour to 2^32 seconds; DefaultMaxExpiration by default.
	MaxAdmin, MaxViewer time.Duration
	// Algorithm is the algorithm of the private keys, RSA by default.
	Algorithm Algorithm
}

// The limits of MaxAdmin and MaxViewer, as in Gardener.
const (
	minMaxExpiration = time.Hour
	maxMaxExpiration = (1 << 32) * time.Second
)

// Validate returns what is wrong with the options, with the names of their flags.
func (o Options) Validate() error {
	var errs []error
	for _, limit := range []struct {
		flag  string
		value time.Duration
	}{{"--shoot-admin-kubeconfig-max-expiration", o.MaxAdmin}, {"--shoot-viewer-kubeconfig-max-expiration", o.MaxViewer}} {
		if limit.value != 0 && (limit.value < minMaxExpiration || limit.value > maxMaxExpiration) {
			errs = append(errs, fmt.Errorf("%s %s: between %s and %s", limit.flag, limit.value, minMaxExpiration, maxMaxExpiration))
		}
	}
	if o.Algorithm != "" && o.Algorithm != ECDSA && o.Algorithm != RSA {
		errs = append(errs, fmt.Errorf("--shoot-kubeconfig-key-algorithm %q: %s or %s", o.Algorithm, ECDSA, RSA))
	}
	return errors.Join(errs...)
}

// Config configures the two subresources.
type Config struct {
	Options
	Shoots, InternalSecrets rest.Getter
	ConfigMaps              ConfigMaps
	// Authorizer decides what the caller may do in the garden.
	Authorizer authorizer.Authorizer
	Clock      clock.PassiveClock
}

// REST is one of the two subresources.
type REST struct {
	kind
	reader     reader
	authorizer authorizer.Authorizer
	clock      clock.PassiveClock
	max        time.Duration
	keys       *keyPool
}

// kind is what differs between the two subresources.
type kind struct {
	gvk   schema.GroupVersionKind
	newFn func() runtime.Object
	// subject returns the name and the group of a user of the garden in the Shoot.
	subject func(context.Context, authorizer.Authorizer, user.Info) (name, group string, err error)
}

var (
	admins = kind{authenticationv1alpha1.SchemeGroupVersion.WithKind("AdminKubeconfigRequest"),
		func() runtime.Object { return &authenticationv1alpha1.AdminKubeconfigRequest{} }, asAdmin}
	viewers = kind{authenticationv1alpha1.SchemeGroupVersion.WithKind("ViewerKubeconfigRequest"),
		func() runtime.Object { return &authenticationv1alpha1.ViewerKubeconfigRequest{} }, asViewer}

	_ rest.NamedCreater             = &REST{}
	_ rest.GroupVersionKindProvider = &REST{}
)

// asAdmin returns the subject of an administrator, that of GEP-16. In Gardener v1.150, administrators have a prefix and
// groups as well.
func asAdmin(_ context.Context, _ authorizer.Authorizer, caller user.Info) (name, group string, err error) {
	return caller.GetName(), user.SystemPrivilegedGroup, nil
}

// asViewer returns the subject of a viewer: with a name to which no role is bound by mistake, and the group of viewers of
// all Shoots for users who see all Projects. Like Gardener v1.150, it asks for a resource by its kind, which only users have
// that may list everything.
func asViewer(ctx context.Context, authz authorizer.Authorizer, caller user.Info) (name, group string, err error) {
	name = viewerPrefix + caller.GetName()
	decision, _, err := authz.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: "list", APIGroup: "core.gardener.cloud/v1beta1", Resource: "Project", ResourceRequest: true,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return name, constants.ShootSystemViewersGroupName, nil
	case err != nil:
		return "", "", fmt.Errorf("finding out what you may do in the garden: %w", err)
	}
	return name, constants.ShootProjectViewersGroupName, nil
}

// New returns the subresources adminkubeconfig and viewerkubeconfig. Destroy of either one stops the pool of keys
// that they share.
func New(cfg Config) (admin, viewer *REST) {
	keys := newKeyPool(cfg.Algorithm.generate)
	subresource := func(kind kind, limit time.Duration) *REST {
		return &REST{kind: kind, reader: reader{cfg.Shoots, cfg.InternalSecrets, cfg.ConfigMaps}, authorizer: cfg.Authorizer,
			clock: cfg.Clock, max: cmp.Or(limit, DefaultMaxExpiration), keys: keys}
	}
	return subresource(admins, cfg.MaxAdmin), subresource(viewers, cfg.MaxViewer)
}

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return r.newFn() }

// Destroy implements rest.Storage.
func (r *REST) Destroy() { r.keys.stop() }

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *REST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return r.gvk }

// Create implements rest.NamedCreater: it returns the request with a kubeconfig for the Shoot of this name.
func (r *REST) Create(ctx context.Context, name string, obj runtime.Object, admit rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if admit != nil {
		if err := admit(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	request := &gardenauthentication.KubeconfigRequest{}
	if err := scheme.Scheme.Convert(obj, request, nil); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a valid %s: %s", r.gvk.Kind, err))
	}
	if errs := validation.ValidateKubeconfigRequest(request); len(errs) > 0 {
		return nil, r.invalid(name, errs)
	}
	caller, err := r.caller(ctx)
	if err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: genericapirequest.NamespaceValue(ctx), Name: name}
	cluster, err := r.reader.read(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(cluster.missing) > 0 {
		return nil, r.invalid(name, cluster.missing)
	}
	if err := r.fillStatus(ctx, request, key, caller, cluster); err != nil {
		return nil, err
	}
	response := r.newFn()
	if err := scheme.Scheme.Convert(request, response, nil); err != nil {
		return nil, fmt.Errorf("converting the %s for Shoot %s: %w", r.gvk.Kind, key, err)
	}
	return response, nil
}

func (r *REST) invalid(name string, errs field.ErrorList) error {
	return apierrors.NewInvalid(r.gvk.GroupKind(), name, errs)
}

// caller returns the user of the request, whose name must fit into a certificate.
func (r *REST) caller(ctx context.Context) (user.Info, error) {
	info, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("the request has no user")
	}
	name := info.GetName()
	switch {
	case name == "":
		return nil, apierrors.NewBadRequest("your user name is empty: a client certificate has to name its user")
	case !utf8.ValidString(name):
		return nil, apierrors.NewBadRequest("your user name is not valid UTF-8: it cannot stand in a client certificate")
	case len(name) > maxUserName:
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("your user name has %d bytes: a client certificate is made for names of at most %d", len(name), maxUserName))
	}
	return info, nil
}

// fillStatus creates the kubeconfig and sets the status of the request.
func (r *REST) fillStatus(ctx context.Context, request *gardenauthentication.KubeconfigRequest, key types.NamespacedName,
	caller user.Info, c *cluster) error {
	name, group, err := r.subject(ctx, r.authorizer, caller)
	if err != nil {
		return err
	}
	private, err := r.keys.take(ctx)
	if err != nil {
		return err
	}
	now := landscapeclock.Real(r.clock).UTC() // after the wait for the key
	life := r.max
	if seconds := request.Spec.ExpirationSeconds; seconds < int64(r.max/time.Second) {
		life = time.Duration(seconds) * time.Second
	}
	notAfter := now.Add(life).Truncate(time.Second) // the precision of certificates
	if end := c.clientCA.cert.NotAfter; end.Before(notAfter) {
		notAfter = end.UTC()
	}
	if !notAfter.After(now) {
		return r.invalid(key.Name, field.ErrorList{field.Forbidden(field.NewPath("status"),
			fmt.Sprintf("the Shoot's client authority has expired at %s: rotate its certificate authorities", notAfter.Format(time.RFC3339)))})
	}
	certPEM, err := c.clientCA.issue(name, group, private.Public(), now, notAfter)
	if err != nil {
		return fmt.Errorf("making a kubeconfig for Shoot %s: %w", key, err)
	}
	request.Status.Kubeconfig, err = newKubeconfig(key.Namespace+"--"+key.Name, c.addresses, c.caBundle, certPEM, private.pem)
	if err != nil {
		return fmt.Errorf("making a kubeconfig for Shoot %s: %w", key, err)
	}
	request.Status.ExpirationTimestamp = metav1.NewTime(notAfter)
	return nil
}

// newKubeconfig returns a kubeconfig with one cluster and one context for each address, in their order. The first is
// the current context. All have the same user, named after the first. The Shoot's name is the prefix of all names.
func newKubeconfig(shoot string, addresses []gardencore.ShootAdvertisedAddress, caBundle, certPEM, keyPEM []byte) ([]byte, error) {
	first := shoot + "-" + addresses[0].Name
	config := clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: first,
		AuthInfos: []clientcmdv1.NamedAuthInfo{
			{Name: first, AuthInfo: clientcmdv1.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}}},
	}
	for _, address := range addresses {
		name, server := shoot+"-"+address.Name, clientcmdv1.Cluster{Server: address.URL}
		if address.Name != constants.AdvertisedAddressWildcardTLSSeedBound { // its certificate is publicly trusted
			server.CertificateAuthorityData = caBundle
		}
		config.Clusters = append(config.Clusters, clientcmdv1.NamedCluster{Name: name, Cluster: server})
		config.Contexts = append(
			config.Contexts, clientcmdv1.NamedContext{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: first}})
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return data, nil
}
