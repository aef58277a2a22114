package restriction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// ownerOf says whose it is what a reference names, if it is somebody else's than the seed's; "" if nothing says so. It
// looks at all who could be, which is slow, but a gardenlet brings references in once in its life.
func (r *request) ownerOf(ctx context.Context, ref reference) (string, error) {
	if ref.namespace != constants.GardenNamespace {
		return fmt.Sprintf("not in the namespace %s", constants.GardenNamespace), nil
	}
	for _, look := range []func(context.Context, reference) (string, error){
		r.otherSeed, r.otherBucket, r.otherGardenlet, r.someBinding, r.otherShoot, r.secretItself,
	} {
		if owner, err := look(ctx, ref); owner != "" || err != nil {
			return owner, err
		}
	}
	return "", nil
}

// shared says whether both may refer to one object. The credentials of a DNS zone are usually those of the landscape.
func shared(ref, others reference) bool { return ref.use == dns && others.use == dns }

func conflicts(ref reference, others []reference) bool {
	return slices.ContainsFunc(others, func(other reference) bool { return other.sameObject(ref) && !shared(ref, other) })
}

func (r *request) otherSeed(ctx context.Context, ref reference) (string, error) {
	list := &corev1beta1.SeedList{}
	if err := r.list(ctx, seeds.resource, "", list); err != nil {
		return "", err
	}
	for i := range list.Items {
		if seed := &list.Items[i]; seed.Name != r.seed && conflicts(ref, seedReferences(&seed.Spec)) {
			return "that of Seed " + seed.Name, nil
		}
	}
	return "", nil
}

func (r *request) otherBucket(ctx context.Context, ref reference) (string, error) {
	list := &corev1beta1.BackupBucketList{}
	if err := r.list(ctx, backupBuckets.resource, "", list); err != nil {
		return "", err
	}
	for i := range list.Items {
		bucket := &list.Items[i]
		refs := bucketReferences(&bucket.Spec)
		if secret := bucket.Status.GeneratedSecretRef; secret != nil {
			refs = append(refs, reference{"Secret", secret.Namespace, secret.Name, backup})
		}
		if !r.isOwn(bucket.Spec.SeedName) && conflicts(ref, refs) {
			return "that of BackupBucket " + bucket.Name, nil
		}
	}
	return "", nil
}

func (r *request) otherGardenlet(ctx context.Context, ref reference) (string, error) {
	managed, list := &seedmanagementv1alpha1.ManagedSeedList{}, &seedmanagementv1alpha1.GardenletList{}
	if err := r.list(ctx, managedSeeds.resource, constants.GardenNamespace, managed); err != nil {
		return "", err
	}
	if err := r.list(ctx, gardenlets.resource, constants.GardenNamespace, list); err != nil {
		return "", err
	}
	for i := range managed.Items {
		if refs, _ := managedSeedReferences(&managed.Items[i]); managed.Items[i].Name != r.seed && conflicts(ref, refs) {
			return "that of ManagedSeed " + managed.Items[i].Name, nil
		}
	}
	for i := range list.Items {
		if refs, _ := gardenletReferences(&list.Items[i]); list.Items[i].Name != r.seed && conflicts(ref, refs) {
			return "that of Gardenlet " + list.Items[i].Name, nil
		}
	}
	return "", nil
}

// someBinding finds the bindings through which shoots use what ref names as their infrastructure's credentials.
func (r *request) someBinding(ctx context.Context, ref reference) (string, error) {
	secretList, credentialsList := &corev1beta1.SecretBindingList{}, &securityv1alpha1.CredentialsBindingList{}
	if err := r.list(ctx, secretBindings, "", secretList); err != nil {
		return "", err
	}
	if err := r.list(ctx, credentialsBindings, "", credentialsList); err != nil {
		return "", err
	}
	for i := range secretList.Items {
		binding := &secretList.Items[i]
		if ref.sameObject(reference{kind: "Secret", namespace: binding.SecretRef.Namespace, name: binding.SecretRef.Name}) {
			return "that of SecretBinding " + key(binding.Namespace, binding.Name), nil
		}
	}
	for i := range credentialsList.Items {
		binding := &credentialsList.Items[i]
		if of := binding.CredentialsRef; ref.sameObject(reference{kind: of.Kind, namespace: of.Namespace, name: of.Name}) {
			return "that of CredentialsBinding " + key(binding.Namespace, binding.Name), nil
		}
	}
	return "", nil
}

// otherShoot finds shoots of the reference's namespace that refer to the same, or for which it is kept.
func (r *request) otherShoot(ctx context.Context, ref reference) (string, error) {
	list := &corev1beta1.ShootList{}
	if err := r.list(ctx, shoots.resource, ref.namespace, list); err != nil {
		return "", err
	}
	keptFor, _ := ofShoot(ref.name, slices.Concat(shootSecretSuffixes, shootInternalSecretSuffixes, shootConfigMapSuffixes))
	for i := range list.Items {
		shoot := &list.Items[i]
		if shoot.Name == keptFor || slices.ContainsFunc(shootReferences(shoot), ref.sameObject) {
			return fmt.Sprintf("that of Shoot %s on seed %q", key(shoot.Namespace, shoot.Name), ptr.Deref(shoot.Spec.SeedName, "")), nil
		}
	}
	return "", nil
}

// secretItself looks at the Secret: what Gardener or Kubernetes made for another purpose says so.
func (r *request) secretItself(ctx context.Context, ref reference) (string, error) {
	if ref.kind != "Secret" {
		return "", nil
	}
	if bucket, ok := strings.CutPrefix(ref.name, constants.SecretPrefixGeneratedBackupBucket); ok {
		return "generated for BackupBucket " + bucket, nil
	}
	secret, found, err := r.secret(ctx, ref.namespace, ref.name)
	if err != nil || !found {
		return "", err
	}
	if role, has := secret.Labels[constants.GardenRole]; has && ref.use != dns {
		return fmt.Sprintf("the landscape's (%s=%s)", constants.GardenRole, role), nil
	}
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		return "a ServiceAccount's token", nil
	}
	return "", nil
}
