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
	// finalizerShoot and finalizerSeed keep a ManagedResource until its objects are gone. A finalizer of a resource manager is
	// finalizerShoot, with the class as suffix if there is one.
	finalizerShoot = "resources.gardener.cloud/gardener-resource-manager"
	finalizerSeed  = finalizerShoot + "-" + constants.SeedResourceManagerClass

	// syncPeriod is how often objects are applied and checked without a change, as in Gardener.
	syncPeriod = time.Minute
	// deletionPoll is the delay between two checks whether deleted objects are gone, as in Gardener.
	deletionPoll = 5 * time.Second
	// shootPoll is the delay between two checks of a shoot, whose objects are not watched.
	shootPoll = 5 * time.Second
)

// Reconciler applies the ManagedResources of a seed.
type Reconciler struct {
	Client client.Client
	// Reader reads directly from the seed, not from a cache.
	Reader client.Reader
	// Shoots gives access to the shoots of the seed.
	Shoots *Shoots
	Clock  clock.WithTicker
	// ShootsOnly leaves the class "seed" to another resource manager.
	ShootsOnly bool
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
	own, target, err := r.responsible(ctx, resource)
	if err != nil {
		return 0, err
	}
	switch ignored, _ := strconv.ParseBool(resource.Annotations[resourcesv1alpha1.Ignore]); {
	case resource.DeletionTimestamp != nil || own == "":
		return r.release(ctx, resource, "")
	case ignored:
		return 0, r.report(ctx, resource, conditionsOf(corev1beta1.ConditionTrue, corev1beta1.ConditionTrue, corev1beta1.ConditionFalse,
			resourcesv1alpha1.ConditionManagedResourceIgnored, "The ManagedResource has the annotation that it is to be ignored.")...)
	}
	// What was applied for another class is deleted first, by the resource manager that applied it.
	if wait, err := r.release(ctx, resource, own); wait > 0 || err != nil {
		return wait, err
	}
	if slices.ContainsFunc(resource.Finalizers, func(f string) bool { return strings.HasPrefix(f, finalizerShoot) && f != own }) {
		return deletionPoll, nil
	}
	if target == nil {
		return shootPoll, nil
	}
	if err := operation.AddFinalizer(ctx, r.Client, resource, own); err != nil {
		return 0, err
	}
	return r.apply(ctx, resource, target)
}

// responsible returns the finalizer for the class of a ManagedResource, empty if this resource manager is not responsible for
// it, and the cluster to which its objects are applied, nil if that cannot be reached at present.
func (r *Reconciler) responsible(ctx context.Context, resource *resourcesv1alpha1.ManagedResource) (string, *target, error) {
	switch ptr.Deref(resource.Spec.Class, "") {
	case "", "resources":
		isShoot, err := r.Shoots.has(ctx, resource.Namespace)
		if err != nil || !isShoot {
			return "", nil, err
		}
		target, _, err := r.Shoots.target(ctx, resource.Namespace)
		return finalizerShoot, target, err
	case constants.SeedResourceManagerClass:
		if r.ShootsOnly {
			return "", nil, nil
		}
		return finalizerSeed, r.seed(), nil
	}
	return "", nil, nil
}

func (r *Reconciler) seed() *target { return &target{r.Client, r.Reader, true} }

// formerTarget returns the cluster to which the objects of a ManagedResource with a finalizer were applied. gone reports that
// there are no such objects any more.
func (r *Reconciler) formerTarget(ctx context.Context, namespace, finalizer string) (target *target, gone bool, err error) {
	if finalizer == finalizerSeed {
		return r.seed(), false, nil
	}
	if isShoot, err := r.Shoots.has(ctx, namespace); err != nil {
		return nil, false, err
	} else if !isShoot { // it is of a version which applied to the seed what has no class
		return r.seed(), false, nil
	}
	return r.Shoots.target(ctx, namespace)
}

// apply applies the objects of a ManagedResource, and reports their health.
func (r *Reconciler) apply(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, target *target) (time.Duration, error) {
	wanted, err := r.read(ctx, resource, target)
	if err != nil {
		return 0, r.failed(ctx, resource, "CannotReadSecret", err)
	}
	old := slices.DeleteFunc(target.applied(resource), func(ref resourcesv1alpha1.ObjectReference) bool {
		return slices.ContainsFunc(wanted.references, func(other resourcesv1alpha1.ObjectReference) bool { return same(ref, other) })
	})
	if len(wanted.undecodable) > 0 {
		// The undecodable data may contain existing objects: they stay, and stay managed.
		wanted.references, old = append(wanted.references, old...), nil
	}
	if err := r.begin(ctx, resource, wanted, old); err != nil {
		return 0, err
	}
	if left, err := target.clean(ctx, old, wanted.released); err != nil {
		return 0, r.failed(ctx, resource, resourcesv1alpha1.ConditionDeletionFailed, err)
	} else if len(left) > 0 {
		return deletionPoll, r.report(ctx, resource, pending(left))
	}
	for _, obj := range wanted.objects {
		if err := target.applyObject(ctx, resource, obj); err != nil {
			healthy, progressing, errHealth := target.checkHealth(ctx, wanted.references)
			if errHealth != nil {
				return 0, r.failed(ctx, resource, resourcesv1alpha1.ConditionApplyFailed, err)
			}
			return 0, r.failed(ctx, resource, resourcesv1alpha1.ConditionApplyFailed, err, healthy, progressing)
		}
	}
	return r.end(ctx, resource, wanted, target)
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

// end reports that everything is applied, and the health of the objects. It returns when to look again.
func (r *Reconciler) end(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, wanted *wanted, target *target) (
	time.Duration, error) {
	applied := conditions.Condition{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionTrue,
		Reason: resourcesv1alpha1.ConditionApplySucceeded, Message: "All objects are applied."}
	if len(wanted.undecodable) > 0 {
		applied.Status, applied.Reason = corev1beta1.ConditionFalse, resourcesv1alpha1.ConditionDecodingFailed
		applied.Message = "Some objects cannot be decoded: " + strings.Join(wanted.undecodable, "; ")
	}
	healthy, progressing, err := target.checkHealth(ctx, wanted.references)
	if err != nil {
		return 0, err
	}
	wait := syncPeriod
	if !target.watched && (healthy.Status != corev1beta1.ConditionTrue || progressing.Status != corev1beta1.ConditionFalse) {
		wait = shootPoll
	}
	return wait, operation.PatchStatus(ctx, r.Client, resource, func(resource *resourcesv1alpha1.ManagedResource) {
		resource.Status.Resources, resource.Status.SecretsDataChecksum = wanted.references, &wanted.checksum
		resource.Status.ObservedGeneration = resource.Generation
		r.set(resource, applied, healthy, progressing)
	})
}

// release deletes the objects of a ManagedResource that is being deleted, or has got another class, and removes the finalizers
// for which they were applied, except one to keep.
func (r *Reconciler) release(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, keep string) (time.Duration, error) {
	for _, former := range []string{finalizerSeed, finalizerShoot} {
		if former == keep || former == finalizerSeed && r.ShootsOnly || !slices.Contains(resource.Finalizers, former) {
			continue
		}
		if wait, err := r.delete(ctx, resource, former); wait > 0 || err != nil {
			return wait, err
		}
		if err := operation.RemoveFinalizers(ctx, r.Client, resource, former); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// delete deletes the objects that were applied for a finalizer. It returns a delay if they are not gone yet.
func (r *Reconciler) delete(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, former string) (time.Duration, error) {
	if ptr.Deref(resource.Spec.KeepObjects, false) {
		return 0, nil
	}
	target, gone, err := r.formerTarget(ctx, resource.Namespace, former)
	switch {
	case err != nil:
		return 0, err
	case gone:
		return 0, nil
	case target == nil:
		return shootPoll, nil
	}
	left, err := target.clean(ctx, target.applied(resource), nil)
	if err != nil {
		return 0, r.failed(ctx, resource, resourcesv1alpha1.ConditionDeletionFailed, err)
	}
	if len(left) > 0 {
		now := conditionsOf(corev1beta1.ConditionProgressing, corev1beta1.ConditionFalse, corev1beta1.ConditionTrue,
			resourcesv1alpha1.ConditionDeletionPending, "The objects are being deleted.")
		now[0] = pending(left)
		return deletionPoll, r.report(ctx, resource, now...)
	}
	return 0, nil
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
