package controllermanager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// bastionName is the name of the controller, as in Gardener.
const bastionName = "bastion"

// These are the limits and the default of the maximum lifetime of a Bastion. The default is Gardener's, which has no
// limits.
const (
	DefaultBastionMaxLifetime = 24 * time.Hour
	MinMaxLifetime            = 10 * time.Second
	MaxMaxLifetime            = 30 * 24 * time.Hour
)

// Bastion deletes Bastions that have expired without a heartbeat, that have reached their maximum lifetime, or whose
// Shoot is deleted, is being deleted or has moved to another Seed (GEP-15).
//
// A Bastion is requeued for exactly the time at which it expires. It is not deleted if its heartbeat has been updated
// concurrently, or if only the cache does not know its Shoot yet.
type Bastion struct {
	kit.Base
	// MaxLifetime is the maximum age of a Bastion. It defaults to DefaultMaxLifetime.
	MaxLifetime time.Duration
}

// AddToManager adds the controller to the manager.
func (r *Bastion) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, bastionName)
	return component.NewControllerBuilder(mgr, bastionName).
		For(&operationsv1alpha1.Bastion{}, builder.WithPredicates(endMoves())).
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.bastionsOf), builder.WithPredicates(shootGone())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// endMoves passes new Bastions and those whose spec or expiration has changed. Other status updates are made by the
// gardenlet.
func endMoves() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *operationsv1alpha1.Bastion) bool {
		return before.Generation != after.Generation || !before.Status.ExpirationTimestamp.Equal(after.Status.ExpirationTimestamp)
	})
}

// shootGone passes Shoots that are deleted, are being deleted, do not allow SSH any more, have another Seed, or have
// been replaced by another Shoot. It does not pass creations, because each Bastion is reconciled at the start and then
// reads its Shoot.
func shootGone() predicate.Predicate {
	return component.DeletionsAndUpdatesIf(func(before, after *corev1beta1.Shoot) bool {
		return before.UID != after.UID || before.DeletionTimestamp == nil && after.DeletionTimestamp != nil ||
			kit.AllowsSSH(before) && !kit.AllowsSSH(after) ||
			!ptr.Equal(before.Spec.SeedName, after.Spec.SeedName)
	})
}

// bastionsOf returns requests for the Bastions of a Shoot.
func (r *Bastion) bastionsOf(ctx context.Context, shoot client.Object) []reconcile.Request {
	return kit.RequestsIf(ctx, r.Client, &operationsv1alpha1.BastionList{}, func(bastion *operationsv1alpha1.Bastion) bool {
		return bastion.Spec.ShootRef.Name == shoot.GetName()
	}, client.InNamespace(shoot.GetNamespace()))
}

// Reconcile deletes a Bastion that has expired or has lost its Shoot, and otherwise requeues it for its expiration.
func (r *Bastion) Reconcile(ctx context.Context, bastion *operationsv1alpha1.Bastion) (reconcile.Result, error) {
	if bastion.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	end, why := r.end(bastion)
	if end.After(r.Clock.Now()) {
		var err error
		if why, err = r.lost(ctx, bastion); err != nil {
			return reconcile.Result{}, fmt.Errorf("looking at the Shoot of the Bastion %s: %w", client.ObjectKeyFromObject(bastion), err)
		}
		if why == "" {
			return reconcile.Result{RequeueAfter: landscapeclock.UntilDue(r.Clock, end)}, nil
		}
	}
	return reconcile.Result{}, r.delete(ctx, bastion, why)
}

// end returns the time at which a Bastion expires, and the reason.
func (r *Bastion) end(bastion *operationsv1alpha1.Bastion) (time.Time, string) {
	end := landscapeclock.At(r.Clock, bastion.CreationTimestamp.Time).Add(cmp.Or(r.MaxLifetime, DefaultBastionMaxLifetime))
	if expiration := bastion.Status.ExpirationTimestamp; expiration != nil && expiration.Time.Before(end) {
		return expiration.Time, "it has expired without a heartbeat"
	}
	return end, "it has reached its maximum lifetime"
}

// lost returns the reason for which a Bastion cannot be used any more, and "" if there is none. The cache may not
// contain a new Shoot yet, or the new seed of a Shoot that has just moved; so a reason found in the cache is confirmed
// with the API server.
func (r *Bastion) lost(ctx context.Context, bastion *operationsv1alpha1.Bastion) (string, error) {
	if why, err := bastionLost(ctx, r.Client, bastion); why == "" || err != nil {
		return "", err
	}
	return bastionLost(ctx, r.Reader, bastion)
}

func bastionLost(ctx context.Context, reader client.Reader, bastion *operationsv1alpha1.Bastion) (string, error) {
	shoot := &corev1beta1.Shoot{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: bastion.Namespace, Name: bastion.Spec.ShootRef.Name}, shoot)
	owner := metav1.GetControllerOf(bastion)
	switch {
	case apierrors.IsNotFound(err):
		return "its Shoot is gone", nil
	case err != nil:
		return "", err
	case owner != nil && owner.Kind == "Shoot" && owner.Name == shoot.Name && owner.UID != shoot.UID:
		return "its Shoot is gone, and there is another one of that name", nil
	case shoot.DeletionTimestamp != nil:
		return "its Shoot is being deleted", nil
	case !kit.AllowsSSH(shoot):
		return "its Shoot allows no access with SSH any more", nil
	case !ptr.Equal(shoot.Spec.SeedName, bastion.Spec.SeedName):
		return "its Shoot has moved to another Seed", nil
	}
	return "", nil
}

// delete deletes a Bastion with its resource version as a precondition: if it has been kept alive since it was read,
// the deletion fails with a conflict.
func (r *Bastion) delete(ctx context.Context, bastion *operationsv1alpha1.Bastion, why string) error {
	seen := client.Preconditions{UID: &bastion.UID, ResourceVersion: &bastion.ResourceVersion}
	if err := r.Client.Delete(ctx, bastion, seen); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("deleting the Bastion %s/%s, because %s: %w", bastion.Namespace, bastion.Name, why, err)
	}
	logf.FromContext(ctx).Info("Deleted a Bastion", "because", why, "shoot", bastion.Spec.ShootRef.Name)
	return nil
}
