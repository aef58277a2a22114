package shootquota

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "shoot-quota"

// DefaultSyncPeriod is the period of the checks of a Shoot, the same as in Gardener.
const DefaultSyncPeriod = time.Hour

const day = 24 * time.Hour

// Reconciler deletes Shoots whose lifetime has ended.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// SyncPeriod is DefaultSyncPeriod by default.
	SyncPeriod time.Duration
}

// AddToManager adds the controller to the manager, with defaults for the fields that are not set.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Clock = cmp.Or[clock.PassiveClock](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Shoot{}, builder.WithPredicates(endChanged())).
		Complete(r)
}

// endChanged passes Shoots that are created, or whose end or binding has changed.
func endChanged() predicate.Predicate {
	return kit.CreationsAndUpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return before.Annotations[constants.ShootExpirationTimestamp] != after.Annotations[constants.ShootExpirationTimestamp] ||
			!ptr.Equal(before.Spec.SecretBindingName, after.Spec.SecretBindingName) ||
			!ptr.Equal(before.Spec.CredentialsBindingName, after.Spec.CredentialsBindingName)
	})
}

// Reconcile deletes a Shoot whose lifetime has ended, and requeues others.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if shoot.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	again := reconcile.Result{RequeueAfter: cmp.Or(r.SyncPeriod, DefaultSyncPeriod)}
	days, err := r.lifetimeDays(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("looking for how long the Shoot %s may live: %w", request, err)
	}
	if days == nil {
		return again, r.forgetEnd(ctx, shoot)
	}
	end, err := r.end(ctx, shoot, *days)
	if err != nil {
		return reconcile.Result{}, err
	}
	if left := end.Sub(r.Clock.Now()); left >= 0 {
		again.RequeueAfter = min(again.RequeueAfter, left+1)
		return again, nil
	}
	logf.FromContext(ctx).Info("Deleting a Shoot whose time is up", "end", end)
	return reconcile.Result{}, kit.DeleteConfirmed(ctx, r.Client, r.Clock, shoot)
}

// lifetimeDays returns the shortest lifetime of the quotas of the Shoot's binding, nil if none limits it.
func (r *Reconciler) lifetimeDays(ctx context.Context, shoot *corev1beta1.Shoot) (days *int32, err error) {
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
func (r *Reconciler) quotas(ctx context.Context, shoot *corev1beta1.Shoot) ([]corev1.ObjectReference, error) {
	switch {
	case shoot.Spec.SecretBindingName != nil:
		binding := &corev1beta1.SecretBinding{}
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: shoot.Namespace, Name: *shoot.Spec.SecretBindingName}, binding); err != nil {
			return nil, fmt.Errorf("reading the SecretBinding %s: %w", *shoot.Spec.SecretBindingName, err)
		}
		return binding.Quotas, nil
	case shoot.Spec.CredentialsBindingName != nil:
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName},
			binding); err != nil {
			return nil, fmt.Errorf("reading the CredentialsBinding %s: %w", *shoot.Spec.CredentialsBindingName, err)
		}
		return binding.Quotas, nil
	}
	return nil, nil
}

// end returns the end of the Shoot's lifetime from its annotation, which it sets if it is missing.
func (r *Reconciler) end(ctx context.Context, shoot *corev1beta1.Shoot, days int32) (time.Time, error) {
	text, ok := shoot.Annotations[constants.ShootExpirationTimestamp]
	if !ok {
		text = shoot.CreationTimestamp.Add(time.Duration(days) * day).Format(time.RFC3339)
		if err := kit.Annotate(ctx, r.Client, shoot, map[string]string{constants.ShootExpirationTimestamp: text}); err != nil {
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

// forgetEnd removes the annotation from a Shoot that no quota limits any more.
func (r *Reconciler) forgetEnd(ctx context.Context, shoot *corev1beta1.Shoot) error {
	if _, ok := shoot.Annotations[constants.ShootExpirationTimestamp]; !ok {
		return nil
	}
	before := shoot.DeepCopy()
	delete(shoot.Annotations, constants.ShootExpirationTimestamp)
	if err := r.Client.Patch(ctx, shoot, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing when the time of the Shoot %s/%s was up: %w", shoot.Namespace, shoot.Name, err)
	}
	return nil
}
