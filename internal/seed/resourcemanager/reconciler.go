package resourcemanager

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
)

const (
	// finalizer, with the class as suffix if there is one, keeps a ManagedResource until its objects are gone.
	finalizer = "resources.gardener.cloud/gardener-resource-manager"

	// syncPeriod is how often objects are applied and checked without a change, as in Gardener.
	syncPeriod = time.Minute
	// deletionPoll is the delay between two checks whether deleted objects are gone, as in Gardener.
	deletionPoll = 5 * time.Second
)

// Reconciler applies the ManagedResources of a seed.
type Reconciler struct {
	Client client.Client
	// Reader reads directly from the seed, not from a cache.
	Reader client.Reader
	Clock  clock.WithTicker
}

// Reconcile reconciles one ManagedResource.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	resource := &resourcesv1alpha1.ManagedResource{}
	if err := r.Reader.Get(ctx, request.NamespacedName, resource); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wait, err := r.reconcile(ctx, resource)
	return component.RequeueAfter(wait, err)
}

func (r *Reconciler) reconcile(ctx context.Context, resource *resourcesv1alpha1.ManagedResource) (time.Duration, error) {
	own, responsible := finalizerOf(resource)
	other := otherFinalizer(resource, own)
	switch ignored, _ := strconv.ParseBool(resource.Annotations[resourcesv1alpha1.Ignore]); {
	case resource.DeletionTimestamp != nil || !responsible:
		return r.delete(ctx, resource)
	case ignored:
		return 0, r.report(ctx, resource, conditionsOf(corev1beta1.ConditionTrue, corev1beta1.ConditionTrue, corev1beta1.ConditionFalse,
			resourcesv1alpha1.ConditionManagedResourceIgnored, "The ManagedResource has the annotation that it is to be ignored.")...)
	case other != "":
		// The resource manager of the former class deletes its objects. A change between the two own classes deletes nothing.
		if !slices.Contains(ownFinalizers, other) {
			return deletionPoll, nil
		}
		if err := operation.RemoveFinalizers(ctx, r.Client, resource, other); err != nil {
			return 0, err
		}
	}
	if err := operation.AddFinalizer(ctx, r.Client, resource, own); err != nil {
		return 0, err
	}
	return r.apply(ctx, resource)
}

var ownFinalizers = []string{finalizer, finalizer + "-" + constants.SeedResourceManagerClass}

// finalizerOf returns the finalizer for the class of a ManagedResource, and whether this resource manager handles the class.
func finalizerOf(resource *resourcesv1alpha1.ManagedResource) (string, bool) {
	switch ptr.Deref(resource.Spec.Class, "") {
	case "", "resources":
		return ownFinalizers[0], true
	case constants.SeedResourceManagerClass:
		return ownFinalizers[1], true
	}
	return "", false
}

// otherFinalizer returns the finalizer of another resource manager that is or was responsible, "" if there is none.
func otherFinalizer(resource *resourcesv1alpha1.ManagedResource, own string) string {
	i := slices.IndexFunc(resource.Finalizers, func(f string) bool { return strings.HasPrefix(f, finalizer) && f != own })
	if i < 0 {
		return ""
	}
	return resource.Finalizers[i]
}

// apply applies the objects of a ManagedResource, and reports their health.
func (r *Reconciler) apply(ctx context.Context, resource *resourcesv1alpha1.ManagedResource) (time.Duration, error) {
	wanted, err := r.read(ctx, resource)
	if err != nil {
		return 0, r.failed(ctx, resource, "CannotReadSecret", err)
	}
	old := slices.DeleteFunc(r.applied(resource), func(ref resourcesv1alpha1.ObjectReference) bool {
		return slices.ContainsFunc(wanted.references, func(other resourcesv1alpha1.ObjectReference) bool { return same(ref, other) })
	})
	if len(wanted.undecodable) > 0 {
		// The undecodable data may contain existing objects: they stay, and stay managed.
		wanted.references, old = append(wanted.references, old...), nil
	}
	if err := r.begin(ctx, resource, wanted, old); err != nil {
		return 0, err
	}
	if left, err := r.clean(ctx, old, wanted.released); err != nil {
		return 0, r.failed(ctx, resource, resourcesv1alpha1.ConditionDeletionFailed, err)
	} else if len(left) > 0 {
		return deletionPoll, r.report(ctx, resource, pending(left))
	}
	for _, obj := range wanted.objects {
		if err := r.applyObject(ctx, resource, obj); err != nil {
			healthy, progressing, errHealth := r.checkHealth(ctx, wanted.references)
			if errHealth != nil {
				return 0, r.failed(ctx, resource, resourcesv1alpha1.ConditionApplyFailed, err)
			}
			return 0, r.failed(ctx, resource, resourcesv1alpha1.ConditionApplyFailed, err, healthy, progressing)
		}
	}
	return syncPeriod, r.end(ctx, resource, wanted)
}

// begin records what is going to be applied in addition to what was applied before, if that differs.
func (r *Reconciler) begin(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, wanted *wanted,
	old []resourcesv1alpha1.ObjectReference) error {
	if len(old) == 0 && ptr.Deref(resource.Status.SecretsDataChecksum, "") == wanted.checksum &&
		equality.Semantic.DeepEqual(resource.Status.Resources, wanted.references) {
		return nil
	}
	return operation.PatchStatus(ctx, r.Client, resource, func(resource *resourcesv1alpha1.ManagedResource) {
		resource.Status.Resources = append(slices.Clone(wanted.references), old...)
		now := conditionsOf(corev1beta1.ConditionProgressing, corev1beta1.ConditionUnknown, corev1beta1.ConditionUnknown,
			resourcesv1alpha1.ConditionChecksPending, "The present set of objects has not been looked at yet.")
		now[0].Reason, now[0].Message = resourcesv1alpha1.ConditionApplyProgressing, "The objects are being applied."
		r.set(resource, now...)
	})
}

// end reports that everything is applied, and the health of the objects.
func (r *Reconciler) end(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, wanted *wanted) error {
	applied := conditions.Condition{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionTrue,
		Reason: resourcesv1alpha1.ConditionApplySucceeded, Message: "All objects are applied."}
	if len(wanted.undecodable) > 0 {
		applied.Status, applied.Reason = corev1beta1.ConditionFalse, resourcesv1alpha1.ConditionDecodingFailed
		applied.Message = "Some objects cannot be decoded: " + strings.Join(wanted.undecodable, "; ")
	}
	healthy, progressing, err := r.checkHealth(ctx, wanted.references)
	if err != nil {
		return err
	}
	return operation.PatchStatus(ctx, r.Client, resource, func(resource *resourcesv1alpha1.ManagedResource) {
		resource.Status.Resources, resource.Status.SecretsDataChecksum = wanted.references, &wanted.checksum
		resource.Status.ObservedGeneration = resource.Generation
		r.set(resource, applied, healthy, progressing)
	})
}

// delete deletes the objects of a ManagedResource that is being deleted, or whose class another resource manager handles.
func (r *Reconciler) delete(ctx context.Context, resource *resourcesv1alpha1.ManagedResource) (time.Duration, error) {
	if !slices.ContainsFunc(resource.Finalizers, func(f string) bool { return slices.Contains(ownFinalizers, f) }) {
		return 0, nil
	}
	if !ptr.Deref(resource.Spec.KeepObjects, false) {
		left, err := r.clean(ctx, r.applied(resource), nil)
		if err != nil {
			return 0, r.failed(ctx, resource, resourcesv1alpha1.ConditionDeletionFailed, err)
		}
		if len(left) > 0 {
			now := conditionsOf(corev1beta1.ConditionProgressing, corev1beta1.ConditionFalse, corev1beta1.ConditionTrue,
				resourcesv1alpha1.ConditionDeletionPending, "The objects are being deleted.")
			now[0] = pending(left)
			return deletionPoll, r.report(ctx, resource, now...)
		}
	}
	return 0, operation.RemoveFinalizers(ctx, r.Client, resource, ownFinalizers...)
}

func pending(left []string) conditions.Condition {
	return conditions.Condition{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionProgressing,
		Reason: resourcesv1alpha1.ConditionDeletionPending, Message: "These objects are being deleted: " + strings.Join(left, ", ")}
}

// conditionsOf returns the three conditions with the same reason.
func conditionsOf(applied, healthy, progressing corev1beta1.ConditionStatus, reason, message string) []conditions.Condition {
	return []conditions.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: applied, Reason: reason, Message: message},
		{Type: resourcesv1alpha1.ResourcesHealthy, Status: healthy, Reason: reason, Message: message},
		{Type: resourcesv1alpha1.ResourcesProgressing, Status: progressing, Reason: reason, Message: message},
	}
}

func (r *Reconciler) set(resource *resourcesv1alpha1.ManagedResource, now ...conditions.Condition) {
	for _, condition := range now {
		resource.Status.Conditions, _ = conditions.Set(resource.Status.Conditions, condition, r.Clock)
	}
}

func (r *Reconciler) report(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, now ...conditions.Condition) error {
	return operation.PatchStatus(ctx, r.Client, resource, func(resource *resourcesv1alpha1.ManagedResource) { r.set(resource, now...) })
}

// failed reports that applying has failed, and returns the cause.
func (r *Reconciler) failed(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, reason string, cause error,
	others ...conditions.Condition) error {
	now := append(others, conditions.Condition{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionFalse,
		Reason: reason, Message: cause.Error()})
	err := operation.PatchStatus(ctx, r.Client, resource, func(resource *resourcesv1alpha1.ManagedResource) {
		resource.Status.ObservedGeneration = resource.Generation
		r.set(resource, now...)
	})
	if err != nil {
		return fmt.Errorf("%w (and: %v)", cause, err)
	}
	return cause
}
