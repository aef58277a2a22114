package project

import (
	"cmp"
	"context"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "project"

// AddToManager adds the controller to the manager, with defaults for the fields that are not set.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Client = cmp.Or(r.Client, mgr.GetClient())
	r.Reader = cmp.Or(r.Reader, mgr.GetAPIReader())
	r.Recorder = cmp.Or(r.Recorder, mgr.GetEventRecorder(ControllerName+"-controller"))
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Project{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Namespace{}, builder.WithPredicates(deletions(nil))).
		Owns(&rbacv1.RoleBinding{}, builder.WithPredicates(deletions(bindingChanged))).
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.projectInDeletion), builder.WithPredicates(deletions(nil))).
		Complete(r)
}

// deletions passes deletions, and the updates for which counts returns true. If counts is nil, no updates pass.
func deletions(counts func(event.UpdateEvent) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return counts != nil && counts(e) },
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// bindingChanged reports whether the role or the subjects of a RoleBinding have changed.
func bindingChanged(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*rbacv1.RoleBinding)
	after, ok2 := e.ObjectNew.(*rbacv1.RoleBinding)
	return ok1 && ok2 && (before.RoleRef != after.RoleRef || !equality.Semantic.DeepEqual(before.Subjects, after.Subjects))
}

// projectInDeletion returns a request for the Project of an object's namespace, if the Project is being deleted.
func (r *Reconciler) projectInDeletion(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
	projects := &corev1beta1.ProjectList{}
	if err := r.Client.List(ctx, projects); err != nil {
		logf.FromContext(ctx).Error(err, "Listing projects", "namespace", obj.GetNamespace())
		return nil
	}
	for _, project := range projects.Items {
		if project.DeletionTimestamp != nil && project.Spec.Namespace != nil && *project.Spec.Namespace == obj.GetNamespace() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: project.Name}})
		}
	}
	return requests
}
