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
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

// DefaultResync is the period in which the Lease is renewed, Gardener's leaseResyncSeconds.
const DefaultResync = 2 * time.Second

// Reconciler renews the Lease of a seed.
type Reconciler struct {
	GardenClient client.Client
	Clock        clock.WithTicker
	SeedName     string
	// Check returns an error if the seed cannot be reached. It defaults to a check of /healthz of the seed's API server.
	Check func(context.Context) error
	// Resync is DefaultResync by default.
	Resync time.Duration
	// OnHealth, if not nil, is called after each attempt with whether the Lease was renewed.
	OnHealth func(bool)

	// renewed says that the Lease exists. It starts as false, because a garden that has just seen the Seed lets the
	// gardenlet create its Lease, but not yet read or change it.
	renewed atomic.Bool
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.renewIfReachable(ctx, seed)
	if r.OnHealth != nil {
		r.OnHealth(err == nil)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.resync()}, conditions.PatchSeed(ctx, r.GardenClient, seed,
		func(all []conditions.Condition) ([]conditions.Condition, bool) {
			return conditions.Set(all, conditions.Condition{
				Type: corev1beta1.GardenletReady, Status: corev1beta1.ConditionTrue,
				Reason: "GardenletReady", Message: "Gardenlet is posting ready status.",
			}, r.Clock)
		})
}

func (r *Reconciler) resync() time.Duration {
	if r.Resync == 0 {
		return DefaultResync
	}
	return r.Resync
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
			LeaseDurationSeconds: ptr.To(max(1, int32(r.resync()/time.Second))),
			RenewTime:            ptr.To(metav1.NewMicroTime(r.Clock.Now())),
		},
	}
}
