package kubeconfig

import (
	"context"
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Gardener's names for what a Shoot has in the namespace of its project.
const (
	clientCASuffix  = ".ca-client"
	clusterCASuffix = ".ca-cluster"
	certKey         = "ca.crt"
	keyKey          = "ca.key"
)

// addressesOfAPIServers are the names of those advertised addresses at which an API server answers.
var addressesOfAPIServers = []string{
	constants.AdvertisedAddressExternal, constants.AdvertisedAddressInternal, constants.AdvertisedAddressUnmanaged,
	constants.AdvertisedAddressWildcardTLSSeedBound,
}

// ConfigMaps reads ConfigMaps as they are stored.
type ConfigMaps func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)

// cluster is what is known of a Shoot's cluster.
type cluster struct {
	addresses []gardencore.ShootAdvertisedAddress
	clientCA  *authority
	bundle    []byte
	// missing is why there is no kubeconfig for the cluster.
	missing field.ErrorList
}

// reader reads what kubeconfigs are made from.
type reader struct {
	shoots, internalSecrets rest.Getter
	configMaps              ConfigMaps
}

// read is what there is now. An error is not the Shoot's fault, or says that there is no Shoot.
func (r reader) read(ctx context.Context, key types.NamespacedName) (*cluster, error) {
	ctx = genericapirequest.WithNamespace(ctx, key.Namespace)
	shoot, err := get[*gardencore.Shoot](ctx, r.shoots, key.Name)
	if err != nil {
		return nil, err
	}
	c := &cluster{}
	if shoot.DeletionTimestamp != nil {
		c.miss(field.Forbidden(field.NewPath("metadata", "deletionTimestamp"), "the Shoot is being deleted"))
	}
	c.addresses = slices.DeleteFunc(slices.Clone(shoot.Status.AdvertisedAddresses), func(address gardencore.ShootAdvertisedAddress) bool {
		return !slices.Contains(addressesOfAPIServers, address.Name)
	})
	if len(c.addresses) == 0 {
		c.miss(field.Required(field.NewPath("status", "advertisedAddresses"), "the Shoot has no address of an API server yet: try again when it is ready (see status.lastOperation)"))
	}
	if err := r.readAuthorities(ctx, key, c); err != nil {
		return nil, err
	}
	return c, nil
}

func (r reader) readAuthorities(ctx context.Context, key types.NamespacedName, c *cluster) error {
	name := key.Name + clientCASuffix
	secret, err := get[*gardencore.InternalSecret](ctx, r.internalSecrets, name)
	if apierrors.IsNotFound(err) {
		c.miss(field.Required(field.NewPath("status"), fmt.Sprintf("the Shoot has no client authority yet (InternalSecret %s): try again when it is ready", name)))
	} else if err != nil {
		return fmt.Errorf("reading the InternalSecret %s/%s: %w", key.Namespace, name, err)
	} else if c.clientCA, err = parseAuthority(secret.Data[certKey], secret.Data[keyKey]); err != nil {
		c.miss(field.Required(field.NewPath("status"), fmt.Sprintf("the Shoot's client authority (InternalSecret %s) is of no use: %s", name, err)))
	}
	name = key.Name + clusterCASuffix
	bundle, err := r.configMaps(ctx, key.Namespace, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the ConfigMap %s/%s: %w", key.Namespace, name, err)
	}
	if err == nil {
		c.bundle = []byte(bundle.Data[certKey])
	}
	if len(c.bundle) == 0 {
		c.miss(field.Required(field.NewPath("status"), fmt.Sprintf("the Shoot has no cluster authority yet (ConfigMap %s): try again when it is ready", name)))
	}
	return nil
}

func (c *cluster) miss(err *field.Error) { c.missing = append(c.missing, err) }

func get[T runtime.Object](ctx context.Context, from rest.Getter, name string) (none T, err error) {
	obj, err := from.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return none, err
	}
	typed, ok := obj.(T)
	if !ok {
		return none, fmt.Errorf("%s is a %T, not a %T", name, obj, none)
	}
	return typed, nil
}
