package controllermanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// gardenletLifecycleName is the name of the controller, as in Gardener.
const gardenletLifecycleName = "gardenlet-lifecycle"

const (
	// DefaultSeedMonitorPeriod is Gardener's default.
	DefaultSeedMonitorPeriod = 40 * time.Second
	// checksPerMonitorPeriod is the number of checks within a monitor period, the same as with Gardener's defaults.
	checksPerMonitorPeriod = 4

	monitorPeriodsOfShoots = 5
)

// statusUnknown is the reason of all conditions that the controller sets, as in Gardener.
const statusUnknown = "StatusUnknown"

// GardenletLifecycle checks by their leases whether gardenlets are alive. If a gardenlet has not renewed its lease
// within the monitor period, the condition GardenletReady of its Seed becomes Unknown; if this has lasted for the
// shoot monitor period, the conditions and constraints of that Seed's Shoots become Unknown, too. The gardenlet itself
// updates them as soon as it is back. If the certificate of a ManagedSeed's gardenlet has expired in the meantime, the
// gardenlet is bootstrapped again.
//
// Leases are read from the API server of the garden, without a cache.
type GardenletLifecycle struct {
	kit.Base
	// MonitorPeriod is the maximum age of a lease, DefaultMonitorPeriod by default. If GardenletReady is Unknown for five
	// of them, the conditions of Shoots become Unknown.
	MonitorPeriod time.Duration
}

// AddToManager adds the controller to the manager.
func (r *GardenletLifecycle) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, gardenletLifecycleName)
	return component.NewControllerBuilder(mgr, gardenletLifecycleName).
		For(&corev1beta1.Seed{}, builder.WithPredicates(component.Creations())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile checks the gardenlet of one Seed.
func (r *GardenletLifecycle) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	again := r.monitorPeriod() / checksPerMonitorPeriod
	// A new Seed has no conditions: its gardenlet has not reported yet.
	if len(seed.Status.Conditions) == 0 {
		return component.RequeueAfter(again, nil)
	}
	alive, err := r.isAlive(ctx, seed.Name)
	if err != nil || alive {
		return component.RequeueAfter(again, err)
	}
	if err := conditions.WriteSeed(ctx, r.Client, r.Clock, seed, corev1beta1.Condition{
		Type: corev1beta1.GardenletReady, Status: corev1beta1.ConditionUnknown, Reason: statusUnknown,
		Message: "The gardenlet does not renew its lease any more. Look whether it runs and reaches the garden.",
	}, 0); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.bootstrapAgain(ctx, seed); err != nil {
		return reconcile.Result{},
			fmt.Errorf("having the gardenlet of the Seed %q bootstrapped again, whose certificate has expired: %w", seed.Name, err)
	}
	since := conditions.Get(seed.Status.Conditions, corev1beta1.GardenletReady).LastTransitionTime.Time
	if r.Clock.Since(since) < monitorPeriodsOfShoots*r.monitorPeriod() {
		return component.RequeueAfter(again, nil)
	}
	return component.RequeueAfter(again, r.setShootsUnknown(ctx, seed))
}

func (r *GardenletLifecycle) monitorPeriod() time.Duration {
	return cmp.Or(r.MonitorPeriod, DefaultSeedMonitorPeriod)
}

// isAlive reports whether the lease of a Seed exists and has been renewed within the monitor period.
func (r *GardenletLifecycle) isAlive(ctx context.Context, seed string) (bool, error) {
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: corev1beta1.GardenerSeedLeaseNamespace, Name: seed}
	if err := r.Reader.Get(ctx, key, lease); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading the lease of the gardenlet of the Seed %q: %w", seed, err)
	}
	return lease.Spec.RenewTime != nil && landscapeclock.Lived(r.Clock, lease.Spec.RenewTime.Time) < r.monitorPeriod(), nil
}

// bootstrapAgain triggers a reconciliation of the Seed's ManagedSeed if the certificate of the gardenlet has expired.
func (r *GardenletLifecycle) bootstrapAgain(ctx context.Context, seed *corev1beta1.Seed) error {
	if expiry := seed.Status.ClientCertificateExpirationTimestamp; expiry == nil || !expiry.Time.Before(r.Clock.Now()) {
		return nil
	}
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: constants.GardenNamespace, Name: seed.Name}, managedSeed); err != nil {
		return client.IgnoreNotFound(err)
	}
	if managedSeed.Annotations[constants.GardenerOperation] == constants.GardenerOperationReconcile {
		return nil
	}
	logf.FromContext(ctx).Info("Having the gardenlet of a ManagedSeed bootstrapped again", "managedSeed", managedSeed.Name)
	return r.Annotate(ctx, managedSeed, map[string]string{constants.GardenerOperation: constants.GardenerOperationReconcile})
}

// setShootsUnknown sets the conditions and constraints of all Shoots whose control plane is in a Seed to Unknown.
func (r *GardenletLifecycle) setShootsUnknown(ctx context.Context, seed *corev1beta1.Seed) error {
	shoots := &corev1beta1.ShootList{}
	if err := r.Client.List(ctx, shoots, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the Shoots of the Seed %q: %w", seed.Name, err)
	}
	var errs []error
	for i := range shoots.Items {
		if ptr.Deref(shoots.Items[i].Status.SeedName, "") == seed.Name {
			errs = append(errs, r.setShootUnknown(ctx, shoots.Items[i].DeepCopy()))
		}
	}
	return errors.Join(errs...)
}

func (r *GardenletLifecycle) setShootUnknown(ctx context.Context, shoot *corev1beta1.Shoot) error {
	// The lock prevents overwriting the conditions of a gardenlet that is back.
	return operation.PatchStatusExclusively(ctx, r.Client, shoot, func(shoot *corev1beta1.Shoot) {
		shoot.Status.Conditions = r.unknown(shoot.Status.Conditions, conditionsSetUnknown(shoot)...)
		shoot.Status.Constraints = r.unknown(shoot.Status.Constraints, corev1beta1.ShootHibernationPossible,
			corev1beta1.ShootMaintenancePreconditionsSatisfied)
	})
}

func (r *GardenletLifecycle) unknown(all []corev1beta1.Condition, kinds ...corev1beta1.ConditionType) []corev1beta1.Condition {
	for _, kind := range kinds {
		all, _ = conditions.Set(all, corev1beta1.Condition{
			Type: kind, Status: corev1beta1.ConditionUnknown, Reason: statusUnknown,
			Message: "The gardenlet that would report this has not renewed its lease for a long time.",
		}, r.Clock)
	}
	return all
}

// conditionsSetUnknown returns the types of the conditions of a Shoot.
func conditionsSetUnknown(shoot *corev1beta1.Shoot) []corev1beta1.ConditionType {
	kinds := []corev1beta1.ConditionType{
		corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy,
		corev1beta1.ShootObservabilityComponentsHealthy, corev1beta1.ShootSystemComponentsHealthy,
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		kinds = append(kinds, corev1beta1.ShootEveryNodeReady)
	}
	return kinds
}
