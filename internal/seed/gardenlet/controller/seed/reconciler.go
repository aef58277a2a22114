package seed

import (
	"context"
	"fmt"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/registration"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "seed"

const (
	// syncPeriod is the period after which an unchanged Seed is reconciled again, as in Gardener.
	syncPeriod = time.Hour
	// requeueDeletion is the delay between two checks whether a Seed in deletion is still needed.
	requeueDeletion = time.Second
	// conflictRetry is the delay before an object is read again after a conflict.
	conflictRetry = 50 * time.Millisecond
	// namespaceRetry is the delay between two checks whether a Seed younger than newSeed has its namespace in the garden.
	namespaceRetry = 100 * time.Millisecond
	newSeed        = time.Minute
)

// Reconciler reconciles a Seed.
type Reconciler struct {
	controllerutils.Base
	// Identity is the name, ID and version of this gardenlet for the Seed's status.
	Identity *corev1beta1.Gardener
	// Resources is the capacity of the seed and the reserved part of it, nil if the capacity is not limited.
	Resources *gardenletconfigv1alpha1.ResourcesConfiguration
	// Version returns the Kubernetes version of the seed.
	Version func(context.Context) (string, error)
	// CertificateExpiration returns when the gardenlet's client certificate for the garden expires, zero if it has none.
	CertificateExpiration func() time.Time
	// Renewed receives a RenewedEvent after the client certificate was renewed.
	Renewed <-chan event.GenericEvent

	deleted operation.DeletedObjects
}

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: 1}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.Own), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(r.Renewed, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

// RenewedEvent returns the event that, sent on Renewed, triggers a reconciliation of the Seed with the given name.
func RenewedEvent(seedName string) event.GenericEvent {
	return event.GenericEvent{Object: &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if found, err := r.deleted.Read(ctx, r.GardenClient, request.NamespacedName, seed); !found || !r.Own(seed) {
		return reconcile.Result{}, err
	}
	after, err := r.reconcileIfPrepared(ctx, seed)
	if apierrors.IsConflict(err) { // others write conditions at any time
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	if err != nil {
		return reconcile.Result{}, r.reportFailure(ctx, seed, err)
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// reconcileIfPrepared reconciles the Seed once the controller-manager has created its namespace in the garden. It returns
// an error if the namespace is still missing when the Seed is older than newSeed.
func (r *Reconciler) reconcileIfPrepared(ctx context.Context, seed *corev1beta1.Seed) (time.Duration, error) {
	if seed.DeletionTimestamp != nil {
		return r.reconcileSeed(ctx, seed)
	}
	there, err := registration.HasNamespace(ctx, r.GardenClient, r.GardenReader, seed.Name)
	switch {
	case err != nil:
		return 0, fmt.Errorf("looking for the namespace of Seed %s in the garden: %w", seed.Name, err)
	case there:
		return r.reconcileSeed(ctx, seed)
	case r.Clock.Since(landscapeclock.At(r.Clock, seed.CreationTimestamp.Time)) < newSeed:
		return namespaceRetry, nil
	}
	return 0, fmt.Errorf("the garden has no namespace %s for Seed %s: see whether the controller-manager runs, which makes it",
		registration.NamespaceOf(seed.Name), seed.Name)
}

// reconcileSeed reconciles or deletes the Seed, and returns the delay until the next reconciliation.
func (r *Reconciler) reconcileSeed(ctx context.Context, seed *corev1beta1.Seed) (time.Duration, error) {
	version, err := r.Version(ctx)
	if err != nil {
		return 0, err
	}
	if err := r.reportStart(ctx, seed, version); err != nil {
		return 0, err
	}
	if seed.DeletionTimestamp != nil {
		return r.delete(ctx, seed)
	}
	if err := r.reconcile(ctx, seed); err != nil {
		return 0, err
	}
	return syncPeriod, r.reportSuccess(ctx, seed)
}

func (r *Reconciler) reconcile(ctx context.Context, seed *corev1beta1.Seed) error {
	if err := operation.AddFinalizer(ctx, r.GardenClient, seed, corev1beta1.GardenerName); err != nil {
		return err
	}
	return r.run(ctx, seed, []step{
		{"Labeling the namespaces of the seed", r.ensureNamespaces},
		{"Deploying cluster-identity", r.ensureIdentity},
		{"Deploying BackupBucket for seed", r.ensureBackupBucket},
		{"Renewing credentials", r.renew},
	})
}

type step struct {
	name string
	do   func(context.Context, *corev1beta1.Seed) error
}

// run executes the steps in order, and reports the progress in the Seed's status if they take long.
func (r *Reconciler) run(ctx context.Context, seed *corev1beta1.Seed, steps []step) error {
	for i, s := range steps {
		if err := r.reportProgress(ctx, seed, s.name, int32(100*i/len(steps))); err != nil {
			return err
		}
		if err := s.do(ctx, seed); err != nil {
			return fmt.Errorf("task %q failed: %w", s.name, err)
		}
	}
	return nil
}
