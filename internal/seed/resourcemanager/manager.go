package resourcemanager

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/seed/gardenerplane"
	"github.com/gardenlite/gardenlite/internal/seed/operators"
	"github.com/gardenlite/gardenlite/internal/seed/tokenrequestor"
)

// User is the user name of the resource manager in its seed.
const User = "gardener.cloud:system:resource-manager"

// Config configures a resource manager. REST, for the seed, is required.
type Config struct {
	REST *rest.Config
	// Clock defaults to the real clock.
	Clock clock.WithTicker
	Log   logr.Logger
	// ShootsOnly leaves the ManagedResources of the class "seed" to another resource manager.
	ShootsOnly bool
}

// New creates a resource manager. It discovers the API of the seed, and starts nothing.
func New(cfg Config) (*component.Manager, error) {
	mgr, err := component.New(component.Config{
		Name: "resource manager", REST: cfg.REST, Clock: cfg.Clock, Log: cfg.Log, Uncached: []client.Object{&corev1.Secret{}},
		AddToScheme: runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme),
	})
	if err != nil {
		return nil, err
	}
	clk := cmp.Or[clock.WithTicker](cfg.Clock, clock.RealClock{})
	shoots := NewShoots(mgr.GetAPIReader(), clk)
	if err := (&Reconciler{Clock: clk, Shoots: shoots, ShootsOnly: cfg.ShootsOnly}).AddToManager(mgr); err != nil {
		return nil, fmt.Errorf("adding the controller %s to the resource manager: %w", ControllerName, err)
	}
	if err := shoots.tokens(mgr.GetClient(), clk).AddToManager(mgr, nil); err != nil {
		return nil, fmt.Errorf("adding the controller %s to the resource manager: %w", tokenrequestor.ControllerName, err)
	}
	if err := (&gardenerplane.Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}).AddToManager(mgr); err != nil {
		return nil, fmt.Errorf("adding the controller %s to the resource manager: %w", gardenerplane.ControllerName, err)
	}
	if err := operators.AddToManager(mgr, clk); err != nil {
		return nil, fmt.Errorf("adding the operators to the resource manager: %w", err)
	}
	return mgr, mgr.Add(shoots)
}

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "managedresource"

// AddToManager adds the controller to the manager of the seed. It sets the fields that are not set yet.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	applied := builder.WithPredicates(predicate.And[client.Object](
		predicate.ResourceVersionChangedPredicate{}, predicate.NewPredicateFuncs(func(obj client.Object) bool { return len(origin(obj)) > 0 })))
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&resourcesv1alpha1.ManagedResource{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.referringTo),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		// The health of these kinds depends on their status.
		WatchesMetadata(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(ofOrigin), applied).
		WatchesMetadata(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(ofOrigin), applied).
		WatchesMetadata(&appsv1.DaemonSet{}, handler.EnqueueRequestsFromMapFunc(ofOrigin), applied).
		Complete(r)
}

// ofOrigin returns a request for the ManagedResource that an object belongs to.
func ofOrigin(_ context.Context, obj client.Object) []reconcile.Request { return origin(obj) }

func origin(obj client.Object) []reconcile.Request {
	namespace, name, ok := strings.Cut(obj.GetAnnotations()[resourcesv1alpha1.OriginAnnotation], "/")
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// referringTo returns requests for the ManagedResources that refer to a Secret.
func (r *Reconciler) referringTo(ctx context.Context, secret client.Object) (requests []reconcile.Request) {
	all := &resourcesv1alpha1.ManagedResourceList{}
	if err := r.Client.List(ctx, all, client.InNamespace(secret.GetNamespace())); err != nil {
		logf.FromContext(ctx).Error(err, "Listing ManagedResources", "namespace", secret.GetNamespace())
		return nil
	}
	for i := range all.Items {
		if slices.Contains(all.Items[i].Spec.SecretRefs, corev1.LocalObjectReference{Name: secret.GetName()}) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}
