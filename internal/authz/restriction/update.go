package restriction

import (
	"context"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// The authorizer allows a gardenlet to update objects with a path to its seed. The checks below prevent that it abuses
// that. Changes that Gardener's API forbids to every user (BackupBucket spec.seedName, ManagedSeed spec.shoot, Shoot
// spec.seedName except through the subresource binding, Bastion spec.shootRef and spec.sshPublicKey) are refused here
// as well if that is cheap, because the webhook may serve any API server.
//
// Each check also applies to updates of the subresource status, because these can change metadata.

func same(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }

// finalizersOfGardenlets are those that Gardener's gardenlets set and remove. Other components wait with others.
var finalizersOfGardenlets = []string{corev1beta1.GardenerName, corev1beta1.ExternalGardenerName,
	"core.gardener.cloud/backupbucket",
	"core.gardener.cloud/controllerinstallation"}

// keepsFromDeletion refuses an update by which others delete the object for the client, or never: a new owner, because
// the garbage collector deletes an object whose owners do not exist; the confirmation that an administrator's deletion
// needs; and finalizers of other components. Only what the client may create anew gets owners: its own check looks at
// them, and a BackupEntry gets its Shoot.
func (r *request) keepsFromDeletion(ctx context.Context, rule *resourceRule) error {
	const confirmation = constants.ConfirmationDeletion
	if value := r.obj.GetAnnotations()[confirmation]; value != "" && value != r.old.GetAnnotations()[confirmation] {
		return forbidden("the deletion of %s %s is not for gardenlets and extensions to confirm", rule.resource.Resource, r.name)
	}
	set, before := sets.New(r.obj.GetFinalizers()...), sets.New(r.old.GetFinalizers()...)
	if others := set.SymmetricDifference(before).Delete(finalizersOfGardenlets...); len(others) > 0 {
		return forbidden("the finalizer %s of %s %s is not for gardenlets and extensions to set or remove",
			sets.List(others)[0],
			rule.resource.Resource, r.name)
	}
	switch rule.resource {
	case secrets.resource, configMaps.resource, internalSecrets.resource:
		return nil
	}
	for _, owner := range r.obj.GetOwnerReferences() {
		if slices.ContainsFunc(r.old.GetOwnerReferences(), func(old metav1.OwnerReference) bool { return same(old, owner) }) {
			continue
		}
		if rule.resource == backupEntries.resource && owner.Kind == shoots.kindName {
			shoot, err := r.ownShoot(ctx, r.namespace, owner.Name)
			if err != nil {
				return err
			}
			if shoot.UID == owner.UID {
				continue
			}
		}
		return forbidden("%s %s is not for gardenlets and extensions to add as an owner of %s %s", owner.Kind, owner.Name,
			rule.resource.Resource, r.name)
	}
	return nil
}

// updateBackupBucket checks the references to the credentials, and to the generated secret in the status: they have a
// path to the bucket's seed, so a client could read another seed's Secret by a reference to it.
func updateBackupBucket(ctx context.Context, r *request) error {
	bucket, old := r.obj.(*corev1beta1.BackupBucket), r.old.(*corev1beta1.BackupBucket)
	if !same(bucket.Spec.SeedName, old.Spec.SeedName) || !same(bucket.Spec.ShootRef, old.Spec.ShootRef) {
		return forbidden("a BackupBucket must not be moved to another seed or shoot")
	}
	if generated := bucket.Status.GeneratedSecretRef; generated != nil && !same(generated, old.Status.GeneratedSecretRef) {
		if want := (corev1.SecretReference{Namespace: constants.GardenNamespace,
			Name: constants.SecretPrefixGeneratedBackupBucket + r.name}); *generated != want {
			return forbidden("%s: status.generatedSecretRef must be %s, not %s", foreign(r.seed), key(want.Namespace, want.Name),
				key(generated.Namespace, generated.Name))
		}
	}
	if err := r.own(old.Spec.SeedName); err != nil {
		return err
	}
	before := *bucket
	before.Spec = old.Spec
	return r.mayRefer(ctx, &before, bucket)
}

// updateBackupEntry checks the bucket, whose credentials have a path through the entry, and the seeds. A control plane
// migration may change all of the entry's specification, but the entry may only follow its shoot.
func updateBackupEntry(ctx context.Context, r *request) error {
	entry, old := r.obj.(*corev1beta1.BackupEntry), r.old.(*corev1beta1.BackupEntry)
	if !same(entry.Spec.ShootRef, old.Spec.ShootRef) {
		return forbidden("a BackupEntry must not be moved to another shoot")
	}
	if refused := r.own(old.Spec.SeedName, old.Status.SeedName); refused != nil {
		if shoot, err := r.ownerOf(ctx, old); isRefusal(err) {
			return refused
		} else if err != nil {
			return err
		} else if r.own(shoot.Spec.SeedName, shoot.Status.SeedName) != nil {
			return refused
		}
	}
	if name := owningShoot(entry); name != "" && name != owningShoot(old) {
		if _, err := r.ownShoot(ctx, r.namespace, name); err != nil {
			return err
		}
	}
	if to := entry.Spec.SeedName; !same(to, old.Spec.SeedName) {
		shoot, err := r.ownerOf(ctx, old)
		if err != nil {
			return err
		}
		if err := followsShoot(to, shoot); err != nil {
			return err
		}
	}
	if err := r.reportsOwnSeed(entry.Status.SeedName, old.Status.SeedName); err != nil {
		return err
	}
	if entry.Spec.BucketName != old.Spec.BucketName {
		return r.ownBucket(ctx, entry.Spec.BucketName)
	}
	return nil
}

// ownerOf returns the shoot that owns a BackupEntry. It refuses another shoot of the same name: the entry is kept for a
// while after its shoot is deleted.
func (r *request) ownerOf(ctx context.Context, entry *corev1beta1.BackupEntry) (*corev1beta1.Shoot, error) {
	shoot, err := r.shoot(ctx, r.namespace, owningShoot(entry))
	if err != nil {
		return nil, err
	}
	for _, owner := range entry.OwnerReferences {
		if owner.Name == shoot.Name && owner.UID == shoot.UID {
			return shoot, nil
		}
	}
	return nil, forbidden("%s: its shoot %s/%s is gone, and another one has the name", foreign(r.seed), r.namespace, shoot.Name)
}

// followsShoot refuses to move an object to another seed than that of its shoot.
func followsShoot(seed *string, shoot *corev1beta1.Shoot) error {
	if seed == nil || !ptr.Equal(seed, shoot.Spec.SeedName) {
		return forbidden("it must not be moved to seed %q: its shoot %s/%s is on seed %q", ptr.Deref(seed, ""), shoot.Namespace,
			shoot.Name, ptr.Deref(shoot.Spec.SeedName, ""))
	}
	return nil
}

// reportsOwnSeed checks status.seedName: a gardenlet may set it to its own seed, or remove it.
func (r *request) reportsOwnSeed(name, old *string) error {
	if ptr.Deref(name, "") == "" || same(name, old) || r.isOwn(name) {
		return nil
	}
	return forbidden("status.seedName must not be set to %q by who is of seed %q", *name, r.seed)
}

// updateBastion checks the shoot, the key, the creator and the seed. The API server sets the seed of a Bastion to that
// of its shoot, which may have left the seed whose gardenlet removes the finalizer.
func updateBastion(ctx context.Context, r *request) error {
	bastion, old := r.obj.(*operationsv1alpha1.Bastion), r.old.(*operationsv1alpha1.Bastion)
	if bastion.Spec.ShootRef != old.Spec.ShootRef || bastion.Spec.SSHPublicKey != old.Spec.SSHPublicKey {
		return forbidden("a Bastion must stay with its shoot and with its user's key")
	}
	if created := constants.GardenCreatedBy; bastion.Annotations[created] != old.Annotations[created] {
		return forbidden("the annotation %s must stay: it says who created the Bastion", created)
	}
	if to := bastion.Spec.SeedName; !same(to, old.Spec.SeedName) {
		shoot, err := r.shoot(ctx, r.namespace, bastion.Spec.ShootRef.Name)
		if err != nil {
			return err
		}
		return followsShoot(to, shoot)
	}
	return nil
}

// updateControllerInstallation refuses changes of the specification: the ControllerDeployment in it, and the pull
// secrets of that, have a path through it. Gardenlets only write the status and finalizers.
func updateControllerInstallation(_ context.Context, r *request) error {
	if !same(r.obj.(*corev1beta1.ControllerInstallation).Spec, r.old.(*corev1beta1.ControllerInstallation).Spec) {
		return forbidden("the specification of a ControllerInstallation is not for gardenlets and extensions to change")
	}
	return nil
}

// updateManagedSeed refuses changes of the specification, because the credentials in the seed template have a path to
// the seed of its shoot. It also refuses a request for a new kubeconfig: while a ManagedSeed is not bootstrapped, the
// responsible gardenlet may create credentials for it, and must not cause that itself.
func updateManagedSeed(_ context.Context, r *request) error {
	managedSeed, old := r.obj.(*seedmanagementv1alpha1.ManagedSeed), r.old.(*seedmanagementv1alpha1.ManagedSeed)
	same, err := sameManagedSeedSpec(managedSeed, old)
	if err != nil {
		return err
	}
	if !same {
		return forbidden("the specification of a ManagedSeed is not for gardenlets and extensions to change")
	}
	return r.asksNoNewKubeconfig()
}

func (r *request) asksNoNewKubeconfig() error {
	if bootstraprules.RequestsNewKubeconfig(r.obj) && !bootstraprules.RequestsNewKubeconfig(r.before) {
		return forbidden("the operation %s is not for gardenlets and extensions to ask for", constants.GardenerOperationRenewKubeconfig)
	}
	return nil
}

// updateShoot refuses new references: every object to which a Shoot refers has a path to its seed, and Gardener's API
// checks only for spec.resources whether the user may read it. The shoots of a project are on many seeds, its secrets
// in one namespace.
func updateShoot(ctx context.Context, r *request) error {
	shoot, old := r.obj.(*corev1beta1.Shoot), r.old.(*corev1beta1.Shoot)
	if !same(shoot.Spec.SeedName, old.Spec.SeedName) {
		return forbidden("a Shoot is not moved to another seed by gardenlets and extensions")
	}
	if err := r.own(old.Spec.SeedName, old.Status.SeedName); err != nil {
		return err // a ManagedSeed's shoots also have a path to the seed of its own shoot
	}
	if to := shoot.Status.UID; to != old.Status.UID && to != shoot.UID {
		return forbidden("status.uid must be %s, the UID of the Shoot", shoot.UID)
	}
	if err := r.reportsOwnSeed(shoot.Status.SeedName, old.Status.SeedName); err != nil {
		return err
	}
	if to := shoot.Status.TechnicalID; to != old.Status.TechnicalID {
		if want, err := r.technicalID(ctx); err != nil {
			return err
		} else if to != want {
			return forbidden("status.technicalID must be %s, not %q", want, to)
		}
	}
	before := *shoot
	before.Spec = old.Spec
	refs, err := added(&before, shoot)
	if err != nil || len(refs) == 0 {
		return err
	}
	return forbidden("a reference to %s %s is not for gardenlets and extensions to add to a Shoot", refs[0].Kind, refs[0].Name)
}

// technicalID returns the technical ID of the Shoot of the request. It is the name of its namespace in the seed, and of much
// else on the machines of those who use the Shoot.
func (r *request) technicalID(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{}
	if err := r.get(ctx, namespaces, "", r.namespace, namespace); err != nil {
		return "", err
	}
	project := namespace.Labels[constants.ProjectName]
	if project == "" {
		return "", forbidden("namespace %s of the Shoot has no label %s", r.namespace, constants.ProjectName)
	}
	return constants.TechnicalIDPrefix + "-" + project + "--" + r.name, nil
}

// sameOwners reports whether the owners are unchanged. The garbage collector deletes an object whose owners do not
// exist, so an owner that never existed would delete it.
func sameOwners(obj, old metav1.Object) bool {
	return same(obj.GetOwnerReferences(), old.GetOwnerReferences())
}

// updateSecret allows a change of the content only for Secrets that the gardenlet may create: secrets of projects and
// of the landscape have a path to every seed with a shoot that refers to them. Changes of finalizers are allowed.
func updateSecret(ctx context.Context, r *request) error {
	secret, old := r.obj.(*corev1.Secret), r.old.(*corev1.Secret)
	unchanged := same(secret.Data, old.Data) && len(secret.StringData) == 0 && secret.Type == old.Type &&
		same(secret.Immutable, old.Immutable) &&
		sameOwners(secret, old) && secret.Labels[constants.GardenRole] == old.Labels[constants.GardenRole]
	if err := r.keepsSeedLabels(); err != nil {
		return err
	}
	switch {
	case r.namespace == corev1beta1.GardenerShootIssuerNamespace:
		unchanged = unchanged && same(secret.Labels, old.Labels)
	case r.landscapes() != "":
		// The annotations of a domain's Secret say which domain it is for.
		unchanged = unchanged && same(secret.Labels, old.Labels) && same(secret.Annotations, old.Annotations)
	case secret.Type == corev1.SecretTypeServiceAccountToken:
		unchanged = unchanged && same(secret.Annotations, old.Annotations) // they determine the account of the token
	}
	if unchanged {
		return nil
	}
	return createSecret(ctx, r)
}

// updateConfigMap checks the same as updateSecret; the ConfigMap with the cluster's identity has a path to all seeds.
func updateConfigMap(ctx context.Context, r *request) error {
	configMap, old := r.obj.(*corev1.ConfigMap), r.old.(*corev1.ConfigMap)
	if err := r.keepsSeedLabels(); err != nil {
		return err
	}
	if same(configMap.Data, old.Data) && same(configMap.BinaryData, old.BinaryData) && same(configMap.Immutable, old.Immutable) &&
		sameOwners(configMap, old) && configMap.Labels[constants.GardenRole] == old.Labels[constants.GardenRole] {
		return nil
	}
	return createConfigMap(ctx, r)
}

func updateInternalSecret(ctx context.Context, r *request) error {
	secret, old := r.obj.(*corev1beta1.InternalSecret), r.old.(*corev1beta1.InternalSecret)
	if same(secret.Data, old.Data) && len(secret.StringData) == 0 && secret.Type == old.Type && same(secret.Immutable, old.Immutable) &&
		sameOwners(secret, old) {
		return nil
	}
	return createInternalSecret(ctx, r)
}

// updateWorkloadIdentity allows finalizers, which a gardenlet sets on the credentials of backups: other seeds may use the same
// WorkloadIdentity.
func updateWorkloadIdentity(_ context.Context, r *request) error {
	identity, old := r.obj.(*securityv1alpha1.WorkloadIdentity), r.old.(*securityv1alpha1.WorkloadIdentity)
	if same(identity.Spec, old.Spec) && same(identity.Labels, old.Labels) && same(identity.Annotations, old.Annotations) &&
		sameOwners(identity, old) {
		return nil
	}
	return forbidden("only finalizers of a WorkloadIdentity are for gardenlets to change")
}

// keepsSeedLabels refuses to set the labels that allow a seed to refer to an object (namedForSeed), and the one by which the
// scheduler finds the distances of regions.
func (r *request) keepsSeedLabels() error {
	for label, value := range r.obj.GetLabels() {
		restricted := label == constants.SchedulingPurpose || strings.HasPrefix(label, constants.LabelPrefixSeedName)
		if restricted && r.before.GetLabels()[label] != value {
			return forbidden("the label %s is not for gardenlets and extensions to set", label)
		}
	}
	return nil
}

// updateServiceAccount refuses new secrets: Secrets in a ServiceAccount have a path to it, and from there to the
// ManagedSeed that is bootstrapped with it.
func updateServiceAccount(ctx context.Context, r *request) error {
	if r.namespace == r.seedNamespace() {
		return r.validateLabels(ctx)
	}
	return r.addsNoSecrets()
}

func (r *request) addsNoSecrets() error {
	account, old := r.obj.(*corev1.ServiceAccount), r.before.(*corev1.ServiceAccount)
	refs, err := added(old, account)
	if err != nil {
		return err
	}
	if len(refs) > 0 {
		return forbidden("a ServiceAccount's list of secrets is not for gardenlets and extensions to add %s to", refs[0])
	}
	for _, ref := range account.ImagePullSecrets {
		if !slices.Contains(old.ImagePullSecrets, ref) {
			return forbidden("a ServiceAccount's list of pull secrets is not for gardenlets and extensions to add Secret %s to", ref.Name)
		}
	}
	return nil
}

// updateClusterRoleBinding checks the subjects: a subject of the bootstrapper's role can become any seed.
func updateClusterRoleBinding(ctx context.Context, r *request) error {
	binding, old := r.obj.(*rbacv1.ClusterRoleBinding), r.old.(*rbacv1.ClusterRoleBinding)
	if binding.RoleRef == old.RoleRef && same(binding.Subjects, old.Subjects) {
		return nil
	}
	if r.extension || !strings.HasPrefix(r.name, bootstraprules.BindingPrefix) {
		return forbidden("%s", foreign(r.seed))
	}
	return createClusterRoleBinding(ctx, r)
}
