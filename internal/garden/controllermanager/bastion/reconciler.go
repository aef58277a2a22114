package bastion

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
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// These are the limits and the default of the maximum lifetime of a Bastion. The default is Gardener's, which has no
// limits.
const (
	DefaultMaxLifetime = 24 * time.Hour
	MinMaxLifetime     = 10 * time.Second
	MaxMaxLifetime     = 30 * 24 * time.Hour
)

// Reconciler deletes expired Bastions.
type Reconciler struct {
	Client client.Client
	// Reader reads from the API server of the garden, without the cache.
	Reader client.Reader
	Clock  clock.PassiveClock
	// MaxLifetime is the maximum age of a Bastion. It defaults to DefaultMaxLifetime.
	MaxLifetime time.Duration
}

// Reconcile deletes a Bastion that has expired or has lost its Shoot, and otherwise requeues it for its expiration.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bastion := &operationsv1alpha1.Bastion{}
	if err := r.Client.Get(ctx, request.NamespacedName, bastion); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if bastion.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	end, why := r.end(bastion)
	left := end.Sub(r.Clock.Now())
	if left > 0 {
		var err error
		if why, err = r.lost(ctx, bastion); err != nil {
			return reconcile.Result{}, fmt.Errorf("looking at the Shoot of the Bastion %s: %w", request, err)
		}
		if why == "" {
			return reconcile.Result{RequeueAfter: left}, nil
		}
	}
	return reconcile.Result{}, r.delete(ctx, bastion, why)
}

// end returns the time at which a Bastion expires, and the reason.
func (r *Reconciler) end(bastion *operationsv1alpha1.Bastion) (time.Time, string) {
	end := bastion.CreationTimestamp.Add(cmp.Or(r.MaxLifetime, DefaultMaxLifetime))
	if expiration := bastion.Status.ExpirationTimestamp; expiration != nil && expiration.Time.Before(end) {
		return expiration.Time, "it has expired without a heartbeat"
	}
	return end, "it has reached its maximum lifetime"
}

// lost returns the reason for which a Bastion cannot be used any more, and "" if there is none. The cache may not
// contain a new Shoot yet, or the new seed of a Shoot that has just moved; so a reason found in the cache is confirmed
// with the API server.
func (r *Reconciler) lost(ctx context.Context, bastion *operationsv1alpha1.Bastion) (string, error) {
	if why, err := lost(ctx, r.Client, bastion); why == "" || err != nil {
		return "", err
	}
	return lost(ctx, r.Reader, bastion)
}

func lost(ctx context.Context, reader client.Reader, bastion *operationsv1alpha1.Bastion) (string, error) {
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
	case !allowsSSH(shoot):
		return "its Shoot allows no access with SSH any more", nil
	case !ptr.Equal(shoot.Spec.SeedName, bastion.Spec.SeedName):
		return "its Shoot has moved to another Seed", nil
	}
	return "", nil
}

func allowsSSH(shoot *corev1beta1.Shoot) bool {
	settings := shoot.Spec.Provider.WorkersSettings
	return settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled
}

// delete deletes a Bastion with its resource version as a precondition: if it has been kept alive since it was read,
// the deletion fails with a conflict.
func (r *Reconciler) delete(ctx context.Context, bastion *operationsv1alpha1.Bastion, why string) error {
	seen := client.Preconditions{UID: &bastion.UID, ResourceVersion: &bastion.ResourceVersion}
	if err := r.Client.Delete(ctx, bastion, seen); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("deleting the Bastion %s/%s, because %s: %w", bastion.Namespace, bastion.Name, why, err)
	}
	logf.FromContext(ctx).Info("Deleted a Bastion", "because", why, "shoot", bastion.Spec.ShootRef.Name)
	return nil
}
