package finalizer

import (
	"context"
	"fmt"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/finalizers"
)

// Name is the finalizer, which is Gardener's.
const Name = "core.gardener.cloud/controllerregistration"

// Kind is a kind of thing that installations refer to.
type Kind struct {
	// ControllerName is the name of its controller, which is Gardener's.
	ControllerName string
	object         func() client.Object
	// referred is the name of the thing of the kind that an installation refers to, if it refers to one.
	referred func(*corev1beta1.ControllerInstallation) string
}

// Kinds are all kinds that are kept.
func Kinds() []Kind {
	return []Kind{
		{
			ControllerName: "controllerregistration-controllerregistration-finalizer",
			object:         func() client.Object { return &corev1beta1.ControllerRegistration{} },
			referred:       func(i *corev1beta1.ControllerInstallation) string { return i.Spec.RegistrationRef.Name },
		},
		{
			ControllerName: "controllerregistration-cluster-finalizer-seed",
			object:         func() client.Object { return &corev1beta1.Seed{} },
			referred: func(i *corev1beta1.ControllerInstallation) string {
				if i.Spec.SeedRef == nil {
					return ""
				}
				return i.Spec.SeedRef.Name
			},
		},
	}
}

// Reconciler keeps things of one kind.
type Reconciler struct {
	Kind   Kind
	Client client.Client
	// Reader asks the garden itself.
	Reader client.Reader
}

// AddToManager adds the controller, with what it misses from the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Reader == nil {
		r.Reader = mgr.GetAPIReader()
	}
	return builder.ControllerManagedBy(mgr).Named(r.Kind.ControllerName).
		For(r.Kind.object(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1beta1.ControllerInstallation{}, handler.EnqueueRequestsFromMapFunc(r.thingOf), builder.WithPredicates(goes())).
		Complete(r)
}

// goes lets deletions through.
func goes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func (r *Reconciler) thingOf(_ context.Context, obj client.Object) []reconcile.Request {
	installation, ok := obj.(*corev1beta1.ControllerInstallation)
	if !ok || r.Kind.referred(installation) == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: r.Kind.referred(installation)}}}
}

// Reconcile puts the finalizer on a thing, or takes it from one that is being deleted and that nothing refers to.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obj := r.Kind.object()
	if err := r.Client.Get(ctx, request.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if obj.GetDeletionTimestamp() == nil {
		return reconcile.Result{}, finalizers.Add(ctx, r.Client, obj, Name)
	}
	if !controllerutil.ContainsFinalizer(obj, Name) {
		return reconcile.Result{}, nil
	}
	installations := &corev1beta1.ControllerInstallationList{}
	if err := r.Reader.List(ctx, installations); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing what refers to %T %q: %w", obj, request.Name, err)
	}
	for i := range installations.Items {
		if r.Kind.referred(&installations.Items[i]) == request.Name {
			// The end of each is watched for.
			logf.FromContext(ctx).Info("It is to be deleted, but something is still installed", "controllerInstallation", installations.Items[i].Name)
			return reconcile.Result{}, nil
		}
	}
	return reconcile.Result{}, finalizers.Remove(ctx, r.Client, obj, Name)
}
