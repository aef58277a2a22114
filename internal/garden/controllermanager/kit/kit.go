package kit

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

// Base is what a Reconciler gets from its manager.
type Base struct {
	Client client.Client
	// Reader reads from the API server of the garden, without the cache.
	Reader   client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
}

// NewBase returns the Base of a controller.
func NewBase(mgr manager.Manager, controller string) Base {
	return Base{mgr.GetClient(), mgr.GetAPIReader(), component.ClockOf(mgr), mgr.GetEventRecorder(controller + "-controller")}
}

// DeleteConfirmed sets the annotations that confirm the deletion of an object, and deletes it. It returns nil if the
// object does not exist or is being deleted.
func (b Base) DeleteConfirmed(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	err := b.Annotate(ctx, obj, map[string]string{
		constants.ConfirmationDeletion: "true",
		constants.GardenerTimestamp:    b.Clock.Now().UTC().Format(time.RFC3339Nano),
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("confirming the deletion of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	if err := b.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// Annotate patches annotations into an object.
func (b Base) Annotate(ctx context.Context, obj client.Object, annotations map[string]string) error {
	before := obj.DeepCopyObject().(client.Object)
	obj.SetAnnotations(labels.Merge(obj.GetAnnotations(), annotations))
	return b.Client.Patch(ctx, obj, client.MergeFrom(before))
}

// ManagedSeedOf returns the ManagedSeed of a Seed, and nil if there is none.
func (b Base) ManagedSeedOf(ctx context.Context, seed client.Object) *seedmanagementv1alpha1.ManagedSeed {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	err := b.Client.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: seed.GetName()}, managedSeed)
	if client.IgnoreNotFound(err) != nil {
		logf.FromContext(ctx).Error(err, "Reading the ManagedSeed of a Seed", "seed", seed.GetName())
	}
	if err != nil {
		return nil
	}
	return managedSeed
}

// MetadataList returns an empty list for the metadata of the objects of a kind.
func MetadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// IsFailed reports whether the last operation of a Shoot failed and is not retried until a user changes the Shoot.
func IsFailed(shoot *corev1beta1.Shoot) bool {
	operation := shoot.Status.LastOperation
	return operation != nil && operation.State == corev1beta1.LastOperationStateFailed &&
		shoot.Status.ObservedGeneration == shoot.Generation
}

// AllowsSSH reports whether a Shoot allows access to its nodes with SSH.
func AllowsSSH(shoot *corev1beta1.Shoot) bool {
	settings := shoot.Spec.Provider.WorkersSettings
	return settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled
}

// SecretOf returns the reference to the Secret of a SecretBinding.
func SecretOf(binding *corev1beta1.SecretBinding) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name}
}

// CheckSeedConditions returns an error unless the Seed's conditions GardenletReady and SeedSystemComponentsHealthy are
// true.
func CheckSeedConditions(seed *corev1beta1.Seed) error {
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.GardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		condition := conditions.Get(seed.Status.Conditions, kind)
		if condition == nil {
			return fmt.Errorf("the condition %s is missing", kind)
		}
		if condition.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("the condition %s is %s, not True: %s: %s", kind, condition.Status, condition.Reason, condition.Message)
		}
	}
	return nil
}
