package shootkubeconfig

import (
	"context"
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
)

// Suffixes and keys of a Shoot's InternalSecrets and ConfigMaps in the namespace of its project, as in Gardener.
const (
	clientCASuffix  = ".ca-client"
	clusterCASuffix = ".ca-cluster"
	certKey         = "ca.crt"
	keyKey          = "ca.key"
)

// addressesOfAPIServers are the names of the advertised addresses of API servers.
var addressesOfAPIServers = []string{
	constants.AdvertisedAddressExternal, constants.AdvertisedAddressInternal, constants.AdvertisedAddressUnmanaged,
	constants.AdvertisedAddressWildcardTLSSeedBound,
}

// ConfigMaps reads a ConfigMap.
type ConfigMaps func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)

// cluster is the data of a Shoot that its kubeconfigs contain or are signed with.
type cluster struct {
	addresses []gardencore.ShootAdvertisedAddress
	clientCA  *authority
	caBundle  []byte
	// missing says why there is no kubeconfig for the Shoot.
	missing field.ErrorList
}

type reader struct {
	shoots, internalSecrets rest.Getter
	configMaps              ConfigMaps
}

// read reads the data of a Shoot. The field missing of the result says what the Shoot lacks; an error means that the
// Shoot does not exist, or that its data cannot be read.
func (r reader) read(ctx context.Context, key types.NamespacedName) (*cluster, error) {
	ctx = genericapirequest.WithNamespace(ctx, key.Namespace)
	shoot, err := resource.Get[*gardencore.Shoot](ctx, r.shoots, key.Name)
	if err != nil {
		return nil, err
	}
	c := &cluster{}
	c.addresses = slices.DeleteFunc(slices.Clone(shoot.Status.AdvertisedAddresses), func(address gardencore.ShootAdvertisedAddress) bool {
		return !slices.Contains(addressesOfAPIServers, address.Name)
	})
	if len(c.addresses) == 0 {
		c.misses(field.NewPath("status", "advertisedAddresses"),
			"the Shoot has no address of an API server yet: try again when it is ready (see status.lastOperation)")
	}
	if err := r.readClientCA(ctx, key, c); err != nil {
		return nil, err
	}
	return c, r.readCABundle(ctx, key, c)
}

// readClientCA reads the certificate authority of client certificates into c.
func (r reader) readClientCA(ctx context.Context, key types.NamespacedName, c *cluster) error {
	name := key.Name + clientCASuffix
	secret, err := resource.Get[*gardencore.InternalSecret](ctx, r.internalSecrets, name)
	if apierrors.IsNotFound(err) {
		c.misses(field.NewPath("status"), "the Shoot has no client authority yet (InternalSecret %s): try again when it is ready", name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the InternalSecret %s/%s: %w", key.Namespace, name, err)
	}
	if c.clientCA, err = parseAuthority(secret.Data[certKey], secret.Data[keyKey]); err != nil {
		c.misses(field.NewPath("status"), "the Shoot's client authority (InternalSecret %s) is of no use: %s", name, err)
	}
	return nil
}

// readCABundle reads the certificate authorities of the Shoot's API server into c.
func (r reader) readCABundle(ctx context.Context, key types.NamespacedName, c *cluster) error {
	name := key.Name + clusterCASuffix
	bundle, err := r.configMaps(ctx, key.Namespace, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the ConfigMap %s/%s: %w", key.Namespace, name, err)
	}
	if err == nil {
		c.caBundle = []byte(bundle.Data[certKey])
	}
	if len(c.caBundle) == 0 {
		c.misses(field.NewPath("status"), "the Shoot has no cluster authority yet (ConfigMap %s): try again when it is ready", name)
	}
	return nil
}

func (c *cluster) misses(path *field.Path, format string, args ...any) {
	c.missing = append(c.missing, field.Required(path, fmt.Sprintf(format, args...)))
}
