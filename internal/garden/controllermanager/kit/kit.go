package kit

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
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
	all := map[string]string{}
	maps.Copy(all, obj.GetAnnotations())
	maps.Copy(all, annotations)
	obj.SetAnnotations(all)
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
