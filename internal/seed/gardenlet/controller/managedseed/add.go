package managedseed

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
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
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "managedseed"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.GardenReader = cmp.Or(r.GardenReader, garden.GetAPIReader())
	r.GardenREST = cmp.Or(r.GardenREST, garden.GetConfig())
	r.Recorder = cmp.Or(r.Recorder, garden.GetEventRecorder(ControllerName+"-controller"))
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	return component.NewControllerBuilder(mgr, ControllerName, controller.Options{
		MaxConcurrentReconciles: gardenletconfigv1alpha1.DefaultControllerConcurrentSyncs,
	}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &seedmanagementv1alpha1.ManagedSeed{},
			r.enqueue(), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			handler.EnqueueRequestsFromMapFunc(ofSeed), predicate.NewPredicateFuncs(r.isOther), seedChanged())).
		Complete(r)
}

// enqueue returns an event handler that delays unchanged ManagedSeeds by a random time when the gardenlet starts, so
// that not all gardenlets access the garden at once. With JitterUpdates it also delays changed ones.
func (r *Reconciler) enqueue() handler.EventHandler {
	add := func(obj client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request], spread bool) {
		managedSeed, ok := obj.(*seedmanagementv1alpha1.ManagedSeed)
		if !ok {
			return
		}
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
		if managedSeed.DeletionTimestamp != nil || managedSeed.Generation == 1 || !spread {
			q.Add(request)
			return
		}
		q.AddAfter(request, r.jitter())
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.Object, q, observed(e.Object) || r.JitterUpdates)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if !observed(e.ObjectNew) {
				add(e.ObjectNew, q, r.JitterUpdates)
			}
		},
	}
}

func observed(obj client.Object) bool {
	managedSeed, ok := obj.(*seedmanagementv1alpha1.ManagedSeed)
	return ok && managedSeed.Status.ObservedGeneration == managedSeed.Generation
}

func (r *Reconciler) jitter() time.Duration {
	most := orDefault(r.SyncJitterPeriod, DefaultSyncJitterPeriod)
	return rand.N(most + 1)
}

// isOther reports whether a Seed is not the gardenlet's own. The other Seeds that the gardenlet sees belong to its
// ManagedSeeds.
func (r *Reconciler) isOther(obj client.Object) bool { return obj.GetName() != r.SeedName }

// ofSeed maps a Seed to the ManagedSeed with the same name.
func ofSeed(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: constants.GardenNamespace, Name: obj.GetName()}}}
}

// seedChanged returns a predicate for changes of a Seed that may require a reconciliation of its ManagedSeed. Changes
// of its conditions do not pass.
func seedChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*corev1beta1.Seed)
			after, ok2 := e.ObjectNew.(*corev1beta1.Seed)
			return ok1 && ok2 && (before.Generation != after.Generation || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
				!before.Status.ClientCertificateExpirationTimestamp.Equal(after.Status.ClientCertificateExpirationTimestamp))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
