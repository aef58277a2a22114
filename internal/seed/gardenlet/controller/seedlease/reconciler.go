package seedlease

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "seed-lease"

const (
	// minRetry and maxRetry are delays of the exponential backoff after a failure. The maximum is Gardener's.
	minRetry = time.Millisecond
	maxRetry = 2 * time.Second
	// minTimeout is the minimum timeout of a renewal, for periods that are shorter.
	minTimeout = 2 * time.Second
)

// Reconciler renews the Lease of a seed.
type Reconciler struct {
	controllerutils.Base
	// Check returns an error if the seed cannot be reached.
	Check func(context.Context) error
	// Resync is the period in which the Lease is renewed, Gardener's leaseResyncSeconds.
	Resync time.Duration

	// renewed says that the Lease exists. It starts as false, because a garden that has just seen the Seed lets the
	// gardenlet create its Lease, but not yet read or change it.
	renewed atomic.Bool
}

// AddToManager adds the controller to the manager of the seed. After the creation of the Seed, it requeues the Seed itself.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: 1,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
		ReconciliationTimeout:   max(r.Resync, minTimeout),
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.Own), component.Creations())).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.renewIfReachable(ctx, seed); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.Resync}, conditions.PatchSeed(ctx, r.GardenClient, seed,
		func(all []conditions.Condition) ([]conditions.Condition, bool) {
			return conditions.Set(all, conditions.Condition{
				Type: corev1beta1.GardenletReady, Status: corev1beta1.ConditionTrue,
				Reason: "GardenletReady", Message: "Gardenlet is posting ready status.",
			}, r.Clock)
		})
}

func (r *Reconciler) renewIfReachable(ctx context.Context, seed *corev1beta1.Seed) error {
	if err := r.Check(ctx); err != nil {
		return fmt.Errorf("not renewing the lease of seed %s, which cannot be reached: %w", seed.Name, err)
	}
	if err := r.renew(ctx, seed); err != nil {
		return fmt.Errorf("renewing the Lease %s/%s: %w", corev1beta1.GardenerSeedLeaseNamespace, seed.Name, err)
	}
	return nil
}

// renew writes the Lease without reading it first: only this gardenlet writes it.
func (r *Reconciler) renew(ctx context.Context, seed *corev1beta1.Seed) error {
	if r.renewed.Load() {
		if err := r.patch(ctx, seed); !apierrors.IsNotFound(err) {
			return err
		}
	}
	err := r.GardenClient.Create(ctx, r.lease(seed))
	if apierrors.IsAlreadyExists(err) {
		err = r.patch(ctx, seed)
	}
	r.renewed.Store(err == nil)
	return err
}

func (r *Reconciler) patch(ctx context.Context, seed *corev1beta1.Seed) error {
	empty := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1beta1.GardenerSeedLeaseNamespace, Name: seed.Name}}
	data, err := client.MergeFrom(empty).Data(r.lease(seed))
	if err != nil {
		return err
	}
	return r.GardenClient.Patch(ctx, empty, client.RawPatch(types.MergePatchType, data))
}

func (r *Reconciler) lease(seed *corev1beta1.Seed) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1beta1.GardenerSeedLeaseNamespace, Name: seed.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Seed", Name: seed.Name, UID: seed.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(seed.Name),
			LeaseDurationSeconds: ptr.To(max(1, int32(r.Resync/time.Second))),
			RenewTime:            ptr.To(metav1.NewMicroTime(r.Clock.Now())),
		},
	}
}
