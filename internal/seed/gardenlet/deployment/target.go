package deployment

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/component/kubeconfig"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/bootstrap"
)

const kubeconfigKey = "kubeconfig"

// IdentityExpires returns when the certificate for the garden expires that the gardenlet of a target has, for a Deployer's
// Status; nil if there is none, or one that cannot be read. The reader is that of the target.
func IdentityExpires(ctx context.Context, target client.Reader) (*time.Time, error) {
	secret := &corev1.Secret{}
	if err := target.Get(ctx, bootstrap.KubeconfigSecret, secret); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the identity of a gardenlet, Secret %s in its cluster: %w", bootstrap.KubeconfigSecret, err)
	}
	config, err := kubeconfig.RESTConfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, nil
	}
	certificates, err := certutil.ParseCertsPEM(config.CertData)
	if err != nil {
		return nil, nil
	}
	return &certificates[0].NotAfter, nil
}

// PutBootstrap writes the bootstrap kubeconfig of a gardenlet into its target, for a Deployer's Deploy, and deletes the
// existing identity if it is to be renewed. It does nothing for a gardenlet without a bootstrap kubeconfig.
func PutBootstrap(ctx context.Context, target client.Client, g *Gardenlet) error {
	if len(g.Bootstrap) == 0 {
		return nil
	}
	garden := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.GardenNamespace, Labels: map[string]string{constants.GardenRole: constants.GardenRoleGarden},
	}}
	if err := target.Create(ctx, garden); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the namespace %s in the cluster of seed %s: %w", garden.Name, g.SeedName, err)
	}
	key := bootstrap.BootstrapKubeconfigSecret
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, target, secret, func() error {
		secret.Data = map[string][]byte{kubeconfigKey: g.Bootstrap}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing the bootstrap kubeconfig, Secret %s in the cluster of seed %s: %w", key, g.SeedName, err)
	}
	if !g.Renew {
		return nil
	}
	key = bootstrap.KubeconfigSecret
	identity := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := target.Delete(ctx, identity); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("throwing away the gardenlet's identity, Secret %s in the cluster of seed %s: %w", key, g.SeedName, err)
	}
	return nil
}
