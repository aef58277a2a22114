package controllerinstallation

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/registration"
)

// delete deletes everything of an installation in order: the ManagedResource, the namespace, and finally the
// extension's ServiceAccount in the garden. It returns the delay before the next check, 0 if everything is deleted.
func (r *Reconciler) delete(ctx context.Context, installation *corev1beta1.ControllerInstallation) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(installation, finalizer) {
		return 0, nil
	}
	for _, step := range []client.Object{
		managedResource(installation),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: NamespaceName(installation.Name)}},
	} {
		what := fmt.Sprintf("%T %s", step, client.ObjectKeyFromObject(step))
		gone, err := r.deleted(ctx, step)
		if err != nil {
			err = fmt.Errorf("deleting %s in the seed: %w", what, err)
			return 0, r.failed(ctx, installation, notInstalled("DeletionFailed", err.Error()), err)
		}
		if !gone {
			return requeueDeletion, r.report(ctx, installation, notInstalled("DeletionPending", what+" is being deleted in the seed."))
		}
	}
	if err := r.reconcileObjectsSecret(ctx, installation, nil); err != nil {
		return 0, r.failed(ctx, installation, notInstalled("DeletionFailed", err.Error()), err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: registration.NamespaceOf(r.SeedName), Name: ServiceAccountName(installation.Name),
	}}
	if err := r.GardenClient.Delete(ctx, account); client.IgnoreNotFound(err) != nil {
		err = fmt.Errorf("deleting ServiceAccount %s/%s in the garden: %w", account.Namespace, account.Name, err)
		return 0, r.failed(ctx, installation, notInstalled("DeletionFailed", err.Error()), err)
	}
	done := notInstalled("DeletionSuccessful", "Everything that was installed is deleted.")
	if err := r.report(ctx, installation, done); client.IgnoreNotFound(err) != nil {
		return 0, err
	}
	return 0, r.finalized.RemoveFinalizers(ctx, r.GardenClient, installation, finalizer)
}

// deleted deletes an object of the seed, and reports whether it was gone already.
func (r *Reconciler) deleted(ctx context.Context, obj client.Object) (bool, error) {
	err := r.SeedClient.Delete(ctx, obj)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err): // a namespace that is being deleted
		return false, nil
	}
	return false, err
}

func notInstalled(reason, message string) corev1beta1.Condition {
	return condition(corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionFalse, reason, message)
}
