package shoot

import (
	"context"
	"fmt"
	"maps"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/shootsecrets"
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
	meta := b.inProject(suffixCACluster, map[string]string{
		constants.GardenRole: constants.GardenRoleCACluster, constants.LabelDiscoveryPublic: constants.DiscoveryShootCA,
		constants.LabelShootName: b.shoot.Name, constants.LabelShootUID: string(b.shoot.UID), constants.LabelUpdateRestriction: "true",
	})
	err := ensure(ctx, b.GardenClient, b.GardenReader, &corev1.ConfigMap{ObjectMeta: named(meta)}, func(c *corev1.ConfigMap) error {
		c.Labels, c.OwnerReferences = meta.Labels, meta.OwnerReferences
		c.Data = map[string]string{shootsecrets.KeyCertificate: string(b.bundle())}
		return nil
	})
	if err != nil {
		return err
	}
	authority := b.authorities[shootsecrets.CAClient].Current
	meta = b.inProject(suffixCAClient, map[string]string{constants.GardenRole: constants.GardenRoleCAClient})
	return ensure(ctx, b.GardenClient, b.GardenReader, &corev1beta1.InternalSecret{ObjectMeta: named(meta)},
		func(s *corev1beta1.InternalSecret) error {
			s.Labels, s.OwnerReferences = meta.Labels, meta.OwnerReferences
			s.Type, s.Data = corev1.SecretTypeOpaque, maps.Clone(authority)
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
	meta := b.inProject(suffix, labels)
	secret := &corev1.Secret{ObjectMeta: named(meta)}
	if data == nil {
		return b.deleteInProject(ctx, secret)
	}
	return ensure(ctx, b.GardenClient, b.GardenReader, secret, func(s *corev1.Secret) error {
		s.Labels, s.OwnerReferences = meta.Labels, meta.OwnerReferences
		s.Type, s.Data = corev1.SecretTypeOpaque, maps.Clone(data) // the client overwrites the map; other tasks read data
		return nil
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
	for _, obj := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: named(b.inProject(suffixCACluster, nil))},
		&corev1beta1.InternalSecret{ObjectMeta: named(b.inProject(suffixCAClient, nil))},
		&corev1.Secret{ObjectMeta: named(b.inProject(suffixSSHKeypair, nil))},
		&corev1.Secret{ObjectMeta: named(b.inProject(suffixSSHKeypair+shootsecrets.Old, nil))},
		&corev1.Secret{ObjectMeta: named(b.inProject(suffixMonitoring, nil))},
	} {
		if err := b.deleteInProject(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func (b *botanist) deleteInProject(ctx context.Context, obj client.Object) error {
	if err := b.GardenReader.Get(ctx, client.ObjectKeyFromObject(obj), obj); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading %T %s in the garden: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	if err := b.GardenClient.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s in the garden: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

func (b *botanist) inProject(suffix string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: b.shoot.Namespace, Name: b.shoot.Name + suffix, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(b.shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))},
	}
}

func named(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name}
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
