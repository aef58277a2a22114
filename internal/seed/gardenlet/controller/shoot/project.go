package shoot

import (
	"context"
	"fmt"
	"maps"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
)

// Suffixes of the names of the Shoot's objects in its project, which begin with the Shoot's name, as in Gardener.
const (
	suffixCACluster  = ".ca-cluster"
	suffixCAClient   = ".ca-client"
	suffixSSHKeypair = ".ssh-keypair"
	suffixMonitoring = ".monitoring"
)

// deployAuthoritiesInProject publishes the Shoot's CAs in the project: one for its users, one for the API server that
// signs their certificates.
func (b *botanist) deployAuthoritiesInProject(ctx context.Context) error {
	clusterCA := &corev1.ConfigMap{}
	err := b.publish(ctx, suffixCACluster, clusterCA, map[string]string{
		constants.GardenRole: constants.GardenRoleCACluster, constants.LabelDiscoveryPublic: constants.DiscoveryShootCA,
		constants.LabelShootName: b.shoot.Name, constants.LabelShootUID: string(b.shoot.UID), constants.LabelUpdateRestriction: "true",
	}, func() { clusterCA.Data = map[string]string{shootsecrets.KeyCertificate: string(b.bundle())} })
	if err != nil {
		return err
	}
	clientCA := &corev1beta1.InternalSecret{}
	labels := map[string]string{constants.GardenRole: constants.GardenRoleCAClient}
	return b.publish(ctx, suffixCAClient, clientCA, labels, func() {
		clientCA.Type, clientCA.Data = corev1.SecretTypeOpaque, maps.Clone(b.authorities[shootsecrets.CAClient].Current)
	})
}

// publish ensures an object of the Shoot in its project, which is deleted with the Shoot.
func (b *botanist) publish(ctx context.Context, suffix string, obj client.Object, labels map[string]string, fill func()) error {
	obj.SetNamespace(b.shoot.Namespace)
	obj.SetName(b.shoot.Name + suffix)
	return ensure(ctx, b.GardenClient, b.GardenReader, obj, func(obj client.Object) error {
		obj.SetLabels(labels)
		obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(b.shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))})
		fill()
		return nil
	})
}

// deploySSHKeypairInProject publishes the key pairs for the Shoot's machines in the project. The old one is written
// first, so that it is always in one of the Secrets.
func (b *botanist) deploySSHKeypairInProject(ctx context.Context) error {
	for _, pair := range []struct {
		suffix string
		data   map[string][]byte
	}{{suffixSSHKeypair + shootsecrets.Old, b.sshKeypair.Old}, {suffixSSHKeypair, b.sshKeypair.Current}} {
		labels := map[string]string{constants.GardenRole: constants.GardenRoleSSHKeyPair}
		if err := b.deploySecretInProject(ctx, pair.suffix, labels, pair.data); err != nil {
			return err
		}
	}
	return nil
}

// deploySecretInProject writes a Secret of the Shoot in its project, or deletes it if there is no data.
func (b *botanist) deploySecretInProject(ctx context.Context, suffix string, labels map[string]string, data map[string][]byte) error {
	secret := &corev1.Secret{}
	if data == nil {
		return b.deleteInProject(ctx, suffix, secret)
	}
	return b.publish(ctx, suffix, secret, labels, func() {
		secret.Type, secret.Data = corev1.SecretTypeOpaque, maps.Clone(data) // the client overwrites the map; other tasks read data
	})
}

// deployObservabilityInProject publishes the password for the Shoot's observability components in the project. The
// Secret has no addresses, because these components do not exist here.
func (b *botanist) deployObservabilityInProject(ctx context.Context) error {
	labels := map[string]string{constants.GardenRole: constants.GardenRoleMonitoring}
	return b.deploySecretInProject(ctx, suffixMonitoring, labels, b.observability)
}

// deleteFromProject deletes the Shoot's objects in its project, except the Shoot itself.
func (b *botanist) deleteFromProject(ctx context.Context) error {
	for _, published := range []struct {
		suffix string
		obj    client.Object
	}{
		{suffixCACluster, &corev1.ConfigMap{}}, {suffixCAClient, &corev1beta1.InternalSecret{}}, {suffixSSHKeypair, &corev1.Secret{}},
		{suffixSSHKeypair + shootsecrets.Old, &corev1.Secret{}}, {suffixMonitoring, &corev1.Secret{}},
	} {
		if err := b.deleteInProject(ctx, published.suffix, published.obj); err != nil {
			return err
		}
	}
	return nil
}

func (b *botanist) deleteInProject(ctx context.Context, suffix string, obj client.Object) error {
	key := client.ObjectKey{Namespace: b.shoot.Namespace, Name: b.shoot.Name + suffix}
	if err := b.GardenReader.Get(ctx, key, obj); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("reading %T %s in the garden: %w", obj, key, err))
	}
	if err := b.GardenClient.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s in the garden: %w", obj, key, err)
	}
	return nil
}

// deployCloudProviderSecret copies the cloud credentials for extensions into the seed. A Shoot without workers may have
// none.
func (b *botanist) deployCloudProviderSecret(ctx context.Context) error {
	ref, err := b.credentials(ctx)
	if err != nil || ref == nil {
		return err
	}
	return b.copyCredentials(ctx, ref, constants.SecretNameCloudProvider)
}

// copyCredentials copies credentials of the garden into a Secret in the Shoot's namespace in the seed.
func (b *botanist) copyCredentials(ctx context.Context, ref *corev1.ObjectReference, name string) (err error) {
	extensions := extensionops.Extensions{Base: &b.Base, Namespace: b.namespace()}
	var credentials client.Object
	if ref.Kind == "InternalSecret" {
		internal := &corev1beta1.InternalSecret{}
		if err := b.GardenReader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, internal); err != nil {
			return fmt.Errorf("reading the credentials of the Shoot, InternalSecret %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		credentials = &corev1.Secret{Data: internal.Data}
	} else if credentials, err = extensions.ReadCredentials(ctx, ref); err != nil {
		return err
	}
	_, _, err = extensions.CopyCredentials(ctx, name, credentials, b.shoot)
	return err
}

// credentials returns the reference in the Shoot's binding, nil if it has no binding.
func (b *botanist) credentials(ctx context.Context) (*corev1.ObjectReference, error) {
	if name := ptr.Deref(b.shoot.Spec.CredentialsBindingName, ""); name != "" {
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := b.GardenReader.Get(ctx, client.ObjectKey{Namespace: b.shoot.Namespace, Name: name}, binding); err != nil {
			return nil, fmt.Errorf("reading CredentialsBinding %s/%s: %w", b.shoot.Namespace, name, err)
		}
		return &binding.CredentialsRef, nil
	}
	name := ptr.Deref(b.shoot.Spec.SecretBindingName, "")
	if name == "" {
		return nil, nil
	}
	binding := &corev1beta1.SecretBinding{}
	if err := b.GardenReader.Get(ctx, client.ObjectKey{Namespace: b.shoot.Namespace, Name: name}, binding); err != nil {
		return nil, fmt.Errorf("reading SecretBinding %s/%s: %w", b.shoot.Namespace, name, err)
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name}, nil
}
