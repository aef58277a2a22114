package bastion

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
)

// delete deletes the Bastions of the seed that belong to a Bastion of the garden, and removes the finalizer of the
// latter when they are gone.
func (r *Reconciler) delete(ctx context.Context, bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(bastion, corev1beta1.GardenerName) {
		return reconcile.Result{}, nil
	}
	failure, gone, err := r.clean(ctx, bastion, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !gone {
		message := "The bastion is being deleted."
		if failure != nil {
			message = "The bastion is being deleted, but: " + failure.Description
		}
		return reconcile.Result{RequeueAfter: requeueDeletion}, r.unready(ctx, bastion, ReasonDeletionInProgress, message, failure)
	}
	return reconcile.Result{}, r.deleted.RemoveFinalizers(ctx, r.GardenClient, bastion, corev1beta1.GardenerName)
}

// cleanUpForeign deletes what the seed has of a Bastion whose Shoot is not on this seed. The Bastion itself is deleted
// by the Bastion controller of the controller-manager.
func (r *Reconciler) cleanUpForeign(ctx context.Context, bastion *operationsv1alpha1.Bastion,
	shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	_, gone, err := r.clean(ctx, bastion, nil)
	if err != nil {
		return reconcile.Result{}, err
	}
	if shoot != nil && ptr.Deref(shoot.Spec.SeedName, "") == r.SeedName { // it is not here yet
		return reconcile.Result{}, r.fail(ctx, bastion, &corev1beta1.LastError{
			Description: fmt.Sprintf("the Shoot %s is being migrated from the seed %s: the bastion is made when it has arrived",
				shoot.Name, *shoot.Status.SeedName)})
	}
	if !controllerutil.ContainsFinalizer(bastion, corev1beta1.GardenerName) {
		return reconcile.Result{}, nil // this gardenlet has never handled the Bastion
	}
	result := reconcile.Result{}
	if !gone {
		result.RequeueAfter = requeueDeletion
	}
	return result, r.fail(ctx, bastion, &corev1beta1.LastError{
		Description: fmt.Sprintf("the Shoot %s is not on the seed %s", bastion.Spec.ShootRef.Name, r.SeedName)})
}

// cleanUpDeleted deletes what the seed has of a Bastion that the garden does not have any more, or has for another
// seed.
func (r *Reconciler) cleanUpDeleted(ctx context.Context, key client.ObjectKey) error {
	extensions, err := r.madeFor(ctx, key)
	if err != nil || len(extensions) == 0 {
		return err
	}
	bastion := &operationsv1alpha1.Bastion{}
	if err := r.GardenReader.Get(ctx, key, bastion); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the Bastion %s: %w", key, err)
	} else if err == nil && bastion.Spec.SeedName != nil && *bastion.Spec.SeedName == r.SeedName {
		return nil // the cache does not have the new Bastion yet
	}
	for i := range extensions {
		if _, err := r.extensions().Delete(ctx, bastion, &extensions[i]); err != nil {
			return err
		}
	}
	return nil
}

// clean deletes the Bastions of the seed that belong to a Bastion of the garden. It returns whether they are gone, and
// if not, the failure of their deletion if there is one.
func (r *Reconciler) clean(ctx context.Context, bastion *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) (
	failure *corev1beta1.LastError, gone bool, err error) {
	extensions, err := r.madeFor(ctx, client.ObjectKeyFromObject(bastion))
	if err != nil {
		return nil, false, err
	}
	// The cache may not have a Bastion that was just created, so the seed is asked for it by its name.
	if len(extensions) == 0 && shoot != nil && shoot.Status.TechnicalID != "" {
		extensions = append(extensions,
			extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Status.TechnicalID, Name: bastion.Name}})
	}
	gone = true
	for i := range extensions {
		removed, err := r.remove(ctx, bastion, &extensions[i])
		if err != nil {
			return nil, false, err
		}
		gone = gone && removed
		if found := extensionops.DeletionFailure(&extensions[i]); !removed && found != nil {
			failure = found
		}
	}
	return failure, gone, nil
}

// remove deletes a Bastion of the seed, and reports whether it is gone. If the deletion is forced in the garden, it
// removes the finalizers once the extension's time has passed.
func (r *Reconciler) remove(ctx context.Context, bastion *operationsv1alpha1.Bastion, extension *extensionsv1alpha1.Bastion) (bool, error) {
	gone, err := r.extensions().Delete(ctx, bastion, extension)
	if gone || err != nil || bastion.Annotations[constants.AnnotationConfirmationForceDeletion] != "true" {
		return gone, err
	}
	err = operation.Patch(ctx, r.SeedClient, extension, func(extension *extensionsv1alpha1.Bastion) {
		if extension.Annotations[constants.AnnotationConfirmationForceDeletion] != "true" {
			metav1.SetMetaDataAnnotation(&extension.ObjectMeta, constants.AnnotationConfirmationForceDeletion, "true")
			metav1.SetMetaDataAnnotation(&extension.ObjectMeta, constants.GardenerTimestamp, r.Clock.Now().UTC().Format(time.RFC3339Nano))
		}
	})
	if err == nil && operation.ForceDeletionTimedOut(extension, r.Clock.Now()) {
		err = operation.RemoveFinalizers(ctx, r.SeedClient, extension, extension.Finalizers...)
		return err == nil || apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// madeFor returns the Bastions of the seed that belong to a Bastion of the garden.
func (r *Reconciler) madeFor(ctx context.Context, key client.ObjectKey) (found []extensionsv1alpha1.Bastion, err error) {
	all := &extensionsv1alpha1.BastionList{}
	if err := r.SeedClient.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing the seed's Bastions: %w", err)
	}
	for i := range all.Items {
		if b := &all.Items[i]; b.Name == key.Name && b.Annotations[AnnotationNamespace] == key.Namespace {
			found = append(found, *b)
		}
	}
	return found, nil
}
