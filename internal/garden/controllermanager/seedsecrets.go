package controllermanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// seedSecretsName is the name of the controller, which is Gardener's.
const seedSecretsName = "seed-secrets"

// ownRoles are the roles of secrets in the namespace garden that are not copied to seeds: secrets of Shoots' control
// planes, pull secrets of extensions, and secrets to which ControllerDeployments or Seeds refer.
var ownRoles = append(slices.Clone(constants.ControlPlaneSecretRoles),
	constants.GardenRoleHelmPullSecret, constants.GardenRoleOCICABundle, constants.GardenRoleResourceReference)

// SeedSecrets creates for each Seed the namespace in the garden in which its gardenlet and its extensions work, and
// copies into it the secrets that the landscape's operator keeps in the namespace garden for all Seeds (by their role:
// domains, certificates, monitoring and others). A copy is deleted with its original.
//
// The namespace is owned by the Seed, and Kubernetes' garbage collection deletes it after the Seed. Secrets are read
// from the API server; only their metadata is watched.
type SeedSecrets struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *SeedSecrets) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, seedSecretsName)
	return component.NewControllerBuilder(mgr, seedSecretsName).
		For(&corev1beta1.Seed{}, builder.WithPredicates(component.Creations())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.AllSeeds), builder.WithPredicates(kit.IsOrWas(isOriginal))).
		Complete(reconcile.AsReconciler(r.Client, r))
}

func isOriginal(secret client.Object) bool {
	return secret.GetNamespace() == constants.GardenNamespace && isForSeeds(secret)
}

func isForSeeds(secret client.Object) bool {
	role, ok := secret.GetLabels()[constants.GardenRole]
	return ok && !slices.Contains(ownRoles, role)
}

// Reconcile creates the namespace of one Seed, and updates the secrets in it.
func (r *SeedSecrets) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	namespace := seedidentity.NamespacePrefix + seed.Name
	if err := r.reconcileNamespace(ctx, seed, namespace); err != nil {
		return reconcile.Result{}, fmt.Errorf("preparing the namespace %q of the Seed %q: %w", namespace, seed.Name, err)
	}
	if err := r.copySecrets(ctx, namespace); err != nil {
		return reconcile.Result{}, fmt.Errorf("copying secrets into the namespace %q of the Seed %q: %w", namespace, seed.Name, err)
	}
	return reconcile.Result{}, nil
}

func (r *SeedSecrets) reconcileNamespace(ctx context.Context, seed *corev1beta1.Seed, name string) error {
	namespace := &corev1.Namespace{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Labels:          map[string]string{constants.GardenRole: constants.GardenRoleSeed},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed"))},
		}})
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(namespace, seed) {
		return errors.New(
			"it does not belong to the Seed: if it is not on its way out with a former Seed of that name, delete it, or give the Seed another name")
	}
	return operation.Patch(ctx, r.Client, namespace, func(namespace *corev1.Namespace) {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, constants.GardenRole, constants.GardenRoleSeed)
	})
}

// copySecrets copies the secrets of the namespace garden, and deletes copies without an original.
func (r *SeedSecrets) copySecrets(ctx context.Context, namespace string) error {
	originals, err := r.secrets(ctx, constants.GardenNamespace)
	if err != nil {
		return err
	}
	copies, err := r.secrets(ctx, namespace)
	if err != nil {
		return err
	}
	var errs []error
	names := sets.New[string]()
	for i := range originals {
		names.Insert(originals[i].Name)
		if err := r.copySecret(ctx, &originals[i], namespace); err != nil {
			errs = append(errs, fmt.Errorf("copying the secret %q: %w", originals[i].Name, err))
		}
	}
	for i := range copies {
		if names.Has(copies[i].Name) {
			continue
		}
		if err := r.Client.Delete(ctx, &copies[i]); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting the secret %q: %w", copies[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// secrets returns the originals or copies in a namespace.
func (r *SeedSecrets) secrets(ctx context.Context, namespace string) ([]corev1.Secret, error) {
	secrets := &corev1.SecretList{}
	if err := r.Reader.List(ctx, secrets, client.InNamespace(namespace), client.HasLabels{constants.GardenRole}); err != nil {
		return nil, fmt.Errorf("listing the secrets in the namespace %q: %w", namespace, err)
	}
	return slices.DeleteFunc(secrets.Items, func(s corev1.Secret) bool { return !isForSeeds(&s) }), nil
}

func (r *SeedSecrets) copySecret(ctx context.Context, original *corev1.Secret, namespace string) error {
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: original.Name, Labels: original.Labels, Annotations: original.Annotations},
		Type:       original.Type,
		Data:       original.Data,
	}
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(wanted), secret)
	if apierrors.IsNotFound(err) {
		return r.Client.Create(ctx, wanted)
	}
	if err != nil {
		return err
	}
	if secret.Type != wanted.Type {
		// The type of a secret cannot be changed.
		if err := r.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return err
		}
		return r.Client.Create(ctx, wanted)
	}
	return operation.Patch(ctx, r.Client, secret, func(secret *corev1.Secret) {
		secret.Labels, secret.Annotations, secret.Data = wanted.Labels, wanted.Annotations, wanted.Data
	})
}
