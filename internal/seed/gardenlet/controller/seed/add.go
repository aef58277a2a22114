package seed

import (
	"cmp"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/probe"
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "seed"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	r.GardenClient = cmp.Or(r.GardenClient, garden.GetClient())
	r.GardenReader = cmp.Or(r.GardenReader, garden.GetAPIReader())
	r.SeedClient = cmp.Or(r.SeedClient, mgr.GetClient())
	r.SeedReader = cmp.Or(r.SeedReader, mgr.GetAPIReader())
	r.Recorder = cmp.Or(r.Recorder, garden.GetEventRecorder(ControllerName+"-controller"))
	r.Clock = cmp.Or[clock.WithTicker](r.Clock, clock.RealClock{})
	if r.Version == nil {
		server, err := probe.New(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		r.Version = server.Version
	}
	b := component.NewControllerBuilder(mgr, ControllerName, controller.Options{MaxConcurrentReconciles: 1}).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.Seed{},
			&handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(r.own), predicate.GenerationChangedPredicate{}))
	if r.Renewed != nil {
		b = b.WatchesRawSource(source.Channel(r.Renewed, &handler.EnqueueRequestForObject{}))
	}
	return b.Complete(r)
}

func (r *Reconciler) own(obj client.Object) bool { return obj.GetName() == r.SeedName }

// RenewedEvent returns the event that, sent on Renewed, triggers a reconciliation of the Seed with the given name.
func RenewedEvent(seedName string) event.GenericEvent {
	return event.GenericEvent{Object: &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}}
}
