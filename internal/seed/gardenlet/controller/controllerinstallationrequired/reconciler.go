package controllerinstallationrequired

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controller/controllerinstallation"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "controllerinstallation-required"

// Reconciler reports which extensions of a seed are required.
type Reconciler struct{ controllerutils.Base }

// AddToManager adds the controller to the manager of the seed. It watches all
// kinds of extension resources, so their CRDs must exist.
func (r *Reconciler) AddToManager(mgr manager.Manager, garden cluster.Cluster) error {
	b := component.NewControllerBuilder(mgr, ControllerName).
		WatchesRawSource(source.Kind[client.Object](garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.EnqueueRequestForObject{}, predicate.Funcs{
				UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
				DeleteFunc: func(event.DeleteEvent) bool { return false },
			}))
	for _, kind := range controllerutils.ExtensionKinds {
		b = b.WatchesRawSource(source.Kind[client.Object](mgr.GetCache(), kind.Object,
			handler.EnqueueRequestsFromMapFunc(r.responsibleFor(kind.Kind)), predicate.NewPredicateFuncs(counts), typeChanged()))
	}
	return b.Complete(r)
}

// typeChanged returns a predicate for changes that affect which types of extension resources exist.
func typeChanged() predicate.Predicate {
	return component.ChangesIf(func(before, after extensionsv1alpha1.Object) bool {
		return before.GetExtensionSpec().GetExtensionType() != after.GetExtensionSpec().GetExtensionType() || counts(before) != counts(after)
	})
}

// responsibleFor returns a map function from an extension resource of a kind to the installations whose extension is
// responsible for it.
func (r *Reconciler) responsibleFor(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		extension, ok := obj.(extensionsv1alpha1.Object)
		if !ok {
			return nil
		}
		extensionType := extension.GetExtensionSpec().GetExtensionType()
		installations, err := controllerinstallation.ResponsibleFor(ctx, r.GardenClient, r.SeedName, kind, extensionType)
		if err != nil {
			logf.FromContext(ctx).Error(err, "Finding the extensions of a resource", "extensionKind", kind)
			return nil
		}
		for _, installation := range installations {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: installation.Name}})
		}
		return requests
	}
}

// Reconcile checks one ControllerInstallation, even if it is being deleted.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	installation := &corev1beta1.ControllerInstallation{}
	if err := r.GardenClient.Get(ctx, request.NamespacedName, installation); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !controllerinstallation.Own(installation, r.SeedName) {
		return reconcile.Result{}, nil
	}
	name, registration := installation.Spec.RegistrationRef.Name, &corev1beta1.ControllerRegistration{}
	if err := r.GardenClient.Get(ctx, client.ObjectKey{Name: name}, registration); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading ControllerRegistration %s of ControllerInstallation %s: %w", name, installation.Name, err)
	}
	found, unknown, err := exist(ctx, r.SeedClient, registration.Spec.Resources)
	if err != nil || len(found) == 0 && unknown {
		return reconcile.Result{}, err
	}
	now := conditions.Condition{Type: corev1beta1.ControllerInstallationRequired, Status: corev1beta1.ConditionFalse,
		Reason: "NoExtensionObjects", Message: "There are no extension resources in the seed that the extension is responsible for."}
	if len(found) > 0 {
		now.Status, now.Reason = corev1beta1.ConditionTrue, "ExtensionObjectsExist"
		now.Message = "There are extension resources in the seed that the extension is responsible for: " + strings.Join(found, ", ")
	}
	return reconcile.Result{}, controllerinstallation.PatchConditions(ctx, r.GardenClient, r.Clock, installation, now)
}

// counts reports whether an extension resource belongs to a seed or a shoot. The garden has extensions of its own.
func counts(obj client.Object) bool {
	extension, ok := obj.(extensionsv1alpha1.Object)
	if !ok {
		return false
	}
	class := ptr.Deref(extension.GetExtensionSpec().GetExtensionClass(), extensionsv1alpha1.ExtensionClassShoot)
	return class == extensionsv1alpha1.ExtensionClassShoot || class == extensionsv1alpha1.ExtensionClassSeed
}

// exist returns those of the resources, as "kind/type" and sorted, that exist in the seed. unknown is true if one of
// the kinds is not known: then an empty result does not mean that the extension is not required.
func exist(ctx context.Context, seed client.Reader, resources []corev1beta1.ControllerResource) (found []string, unknown bool, err error) {
	types := map[string]map[string]bool{}
	for _, resource := range resources {
		i := slices.IndexFunc(controllerutils.ExtensionKinds, func(k controllerutils.ExtensionKind) bool { return k.Kind == resource.Kind })
		if i < 0 {
			unknown = true
			continue
		}
		if types[resource.Kind] == nil {
			if types[resource.Kind], err = typesOf(ctx, seed, controllerutils.ExtensionKinds[i]); err != nil {
				return nil, false, err
			}
		}
		if types[resource.Kind][resource.Type] {
			found = append(found, resource.Kind+"/"+resource.Type)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), unknown, nil
}

// typesOf returns the types of the extension resources of a kind in the seed, none if the kind is not served.
func typesOf(ctx context.Context, seed client.Reader, kind controllerutils.ExtensionKind) (map[string]bool, error) {
	types := map[string]bool{}
	err := kind.Each(ctx, seed, func(extension extensionsv1alpha1.Object) error {
		if counts(extension) {
			types[extension.GetExtensionSpec().GetExtensionType()] = true
		}
		return nil
	}, client.UnsafeDisableDeepCopy)
	if meta.IsNoMatchError(err) {
		err = nil
	}
	return types, err
}
