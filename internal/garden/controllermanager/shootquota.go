package controllermanager

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// shootQuotaName is the name of the controller, which is Gardener's.
const shootQuotaName = "shoot-quota"

// DefaultShootQuotaSyncPeriod is the period of the checks of a Shoot, the same as in Gardener.
const DefaultShootQuotaSyncPeriod = time.Hour

// maxDays is the longest lifetime that a time.Duration can hold, 292 years.
const maxDays = int32(math.MaxInt64 / day)

// ShootQuota deletes Shoots whose lifetime has ended: a Quota to which the binding of a Shoot refers may limit the
// lifetime of a cluster in days. An annotation on the Shoot contains the end, and users can prolong it there.
type ShootQuota struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *ShootQuota) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, shootQuotaName)
	return component.NewControllerBuilder(mgr, shootQuotaName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(endChanged())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// endChanged passes Shoots that are created, or whose end or binding has changed.
func endChanged() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return before.Annotations[constants.ShootExpirationTimestamp] != after.Annotations[constants.ShootExpirationTimestamp] ||
			!ptr.Equal(before.Spec.SecretBindingName, after.Spec.SecretBindingName) ||
			!ptr.Equal(before.Spec.CredentialsBindingName, after.Spec.CredentialsBindingName)
	})
}

// Reconcile deletes a Shoot whose lifetime has ended, and requeues others.
func (r *ShootQuota) Reconcile(ctx context.Context, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if shoot.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	again := reconcile.Result{RequeueAfter: DefaultShootQuotaSyncPeriod}
	days, err := r.lifetimeDays(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("looking for how long the Shoot %s may live: %w", client.ObjectKeyFromObject(shoot), err)
	}
	if days == nil {
		return again, r.removeEnd(ctx, shoot)
	}
	end, err := r.end(ctx, shoot, *days)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !r.Clock.Now().After(end) {
		again.RequeueAfter = min(again.RequeueAfter, landscapeclock.UntilDue(r.Clock, end.Add(1)))
		return again, nil
	}
	logf.FromContext(ctx).Info("Deleting a Shoot whose time is up", "end", end)
	return reconcile.Result{}, r.DeleteConfirmed(ctx, shoot)
}

// lifetimeDays returns the shortest lifetime of the quotas of the Shoot's binding, nil if none limits it.
func (r *ShootQuota) lifetimeDays(ctx context.Context, shoot *corev1beta1.Shoot) (days *int32, err error) {
	quotas, err := r.quotas(ctx, shoot)
	if err != nil {
		return nil, err
	}
	for _, ref := range quotas {
		quota := &corev1beta1.Quota{}
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, quota); err != nil {
			return nil, fmt.Errorf("reading the Quota %s/%s: %w", ref.Namespace, ref.Name, err)
		}
		if limit := quota.Spec.ClusterLifetimeDays; limit != nil && (days == nil || *limit < *days) {
			days = limit
		}
	}
	return days, nil
}

// quotas returns the references to the quotas of the Shoot's binding.
func (r *ShootQuota) quotas(ctx context.Context, shoot *corev1beta1.Shoot) ([]corev1.ObjectReference, error) {
	if name := shoot.Spec.SecretBindingName; name != nil {
		binding := &corev1beta1.SecretBinding{}
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: shoot.Namespace, Name: *name}, binding); err != nil {
			return nil, fmt.Errorf("reading the SecretBinding %s: %w", *name, err)
		}
		return binding.Quotas, nil
	}
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: shoot.Namespace, Name: *name}, binding); err != nil {
			return nil, fmt.Errorf("reading the CredentialsBinding %s: %w", *name, err)
		}
		return binding.Quotas, nil
	}
	return nil, nil
}

// end returns the end of the Shoot's lifetime from its annotation, which it sets if it is missing.
func (r *ShootQuota) end(ctx context.Context, shoot *corev1beta1.Shoot, days int32) (time.Time, error) {
	text, ok := shoot.Annotations[constants.ShootExpirationTimestamp]
	if !ok {
		text = landscapeclock.At(r.Clock, shoot.CreationTimestamp.Time).Add(time.Duration(min(days, maxDays)) * day).Format(time.RFC3339)
		if err := r.Annotate(ctx, shoot, map[string]string{constants.ShootExpirationTimestamp: text}); err != nil {
			return time.Time{}, fmt.Errorf("writing when the time of the Shoot %s/%s is up: %w", shoot.Namespace, shoot.Name, err)
		}
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("the annotation %s of the Shoot %s/%s must be a time like 2006-01-02T15:04:05Z: %w",
			constants.ShootExpirationTimestamp, shoot.Namespace, shoot.Name, err)
	}
	return end, nil
}

// removeEnd removes the annotation from a Shoot that no quota limits any more.
func (r *ShootQuota) removeEnd(ctx context.Context, shoot *corev1beta1.Shoot) error {
	return client.IgnoreNotFound(operation.Patch(ctx, r.Client, shoot, func(shoot *corev1beta1.Shoot) {
		delete(shoot.Annotations, constants.ShootExpirationTimestamp)
	}))
}
