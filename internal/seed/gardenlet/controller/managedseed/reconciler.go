package managedseed

import (
	"context"
	"fmt"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/deployment"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "managedseed"

// Reconciler reconciles the ManagedSeeds of a seed.
type Reconciler struct {
	controllerutils.Base
	// GardenConfig has the address and CA of the garden for the deployed gardenlets. Credentials in it are ignored.
	GardenConfig *rest.Config
	// Config is the configuration of this gardenlet, from which deployed gardenlets inherit if their ManagedSeed says
	// so.
	Config   *gardenletconfigv1alpha1.GardenletConfiguration
	Deployer deployment.Deployer
	// SyncPeriod is the period of reconciliations, WaitSyncPeriod the period while a ManagedSeed waits for something.
	SyncPeriod, WaitSyncPeriod time.Duration

	deleted operation.DeletedObjects
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: gardenletconfigv1alpha1.DefaultControllerConcurrentSyncs,
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &seedmanagementv1alpha1.ManagedSeed{},
			&handler.EnqueueRequestForObject{}, predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			handler.EnqueueRequestsFromMapFunc(ofSeed), predicate.NewPredicateFuncs(r.isOther), seedChanged())).
		Complete(r)
}

// isOther reports whether a Seed is not the gardenlet's own. The other Seeds that the gardenlet sees belong to its
// ManagedSeeds.
func (r *Reconciler) isOther(obj client.Object) bool { return !r.Own(obj) }

// ofSeed maps a Seed to the ManagedSeed with the same name.
func ofSeed(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: constants.GardenNamespace, Name: obj.GetName()}}}
}

// seedChanged returns a predicate for changes of a Seed that may require a reconciliation of its ManagedSeed. Changes
// of its conditions do not pass.
func seedChanged() predicate.Predicate {
	changed := component.ChangesIf(func(before, after *corev1beta1.Seed) bool {
		return before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			!before.Status.ClientCertificateExpirationTimestamp.Equal(after.Status.ClientCertificateExpirationTimestamp)
	})
	changed.CreateFunc = func(e event.CreateEvent) bool { return !e.IsInInitialList }
	return changed
}

// Reconcile reconciles one ManagedSeed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if found, err := r.deleted.Read(ctx, r.GardenClient, request.NamespacedName, managedSeed); !found {
		return reconcile.Result{}, err
	}
	if managedSeed.Spec.Shoot == nil || managedSeed.Namespace != constants.GardenNamespace {
		return reconcile.Result{}, nil
	}
	shoot := &corev1beta1.Shoot{}
	key := client.ObjectKey{Namespace: managedSeed.Namespace, Name: managedSeed.Spec.Shoot.Name}
	if err := r.GardenReader.Get(ctx, key, shoot); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading Shoot %s of ManagedSeed %s: %w", key, request, err)
	}
	if ptr.Deref(shoot.Spec.SeedName, "") != r.SeedName {
		logf.FromContext(ctx).V(1).Info("Not for this gardenlet: the Shoot is on another seed", "shoot", key)
		return reconcile.Result{}, nil
	}
	s := &step{Reconciler: r, managedSeed: managedSeed, shoot: shoot, generation: managedSeed.Generation}
	var wait time.Duration
	var err error
	if managedSeed.DeletionTimestamp != nil {
		wait, err = s.delete(ctx)
	} else {
		wait, err = s.reconcile(ctx)
	}
	return component.RequeueAfter(wait, err)
}

// step is the reconciliation of a ManagedSeed as it was read.
type step struct {
	*Reconciler
	managedSeed *seedmanagementv1alpha1.ManagedSeed
	shoot       *corev1beta1.Shoot
	generation  int64
}

func (s *step) reconcile(ctx context.Context) (time.Duration, error) {
	if err := operation.AddFinalizer(ctx, s.GardenClient, s.managedSeed, corev1beta1.GardenerName); err != nil {
		return 0, err
	}
	shoot := client.ObjectKeyFromObject(s.shoot)
	if !reconciled(s.shoot) {
		message := fmt.Sprintf("Waiting for shoot %q to be reconciled", shoot)
		s.event(corev1.EventTypeNormal, corev1beta1.EventReconciling, corev1beta1.EventActionReconcile, message)
		return s.WaitSyncPeriod,
			s.report(ctx, condition(seedmanagementv1alpha1.ManagedSeedShootReconciled, false, corev1beta1.EventReconciling, message))
	}
	ready := condition(seedmanagementv1alpha1.ManagedSeedShootReconciled, true, corev1beta1.EventReconciled,
		fmt.Sprintf("Shoot %q has been reconciled", shoot))
	if err := s.install(ctx); err != nil {
		return 0, s.failed(ctx, corev1beta1.EventReconcileError, corev1beta1.EventActionReconcile, err, ready)
	}
	return s.SyncPeriod, s.report(ctx, ready,
		condition(seedmanagementv1alpha1.SeedRegistered, true, corev1beta1.EventReconciled,
			fmt.Sprintf("Seed %s has been registered", s.managedSeed.Name)))
}

func reconciled(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return shoot.Generation == shoot.Status.ObservedGeneration && last != nil && last.State == corev1beta1.LastOperationStateSucceeded
}

// failed reports an error in an event and in the condition SeedRegistered, and returns it for a retry.
func (s *step) failed(ctx context.Context, reason, action string, err error, others ...conditions.Condition) error {
	s.event(corev1.EventTypeWarning, reason, action, err.Error())
	if statusErr := s.report(
		ctx, append(others, condition(seedmanagementv1alpha1.SeedRegistered, false, reason, err.Error()))...); statusErr != nil {
		logf.FromContext(ctx).Error(statusErr, "Writing the status of a ManagedSeed")
	}
	return err
}

func (s *step) report(ctx context.Context, now ...conditions.Condition) error {
	return operation.PatchStatus(ctx, s.GardenClient, s.managedSeed, func(managedSeed *seedmanagementv1alpha1.ManagedSeed) {
		managedSeed.Status.ObservedGeneration = s.generation
		for _, c := range now {
			managedSeed.Status.Conditions, _ = conditions.Set(managedSeed.Status.Conditions, c, s.Clock)
		}
	})
}

func (s *step) event(severity, reason, action, message string) {
	s.Recorder.Eventf(s.managedSeed, nil, severity, reason, action, "%s", message)
}

func condition(kind corev1beta1.ConditionType, is bool, reason, message string) conditions.Condition {
	status := corev1beta1.ConditionFalse
	if is {
		status = corev1beta1.ConditionTrue
	}
	return conditions.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
