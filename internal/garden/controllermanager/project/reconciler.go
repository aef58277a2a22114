package project

import (
	"context"
	"fmt"
	"time"

	controllermanagerv1alpha1 "github.com/gardener/gardener/pkg/apis/config/controllermanager/v1alpha1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// ControllerName is the name of the controller, which is Gardener's.
const ControllerName = "project"

// recheck is the delay before a Project is reconciled again while its namespace is being deleted or contains Shoots.
// The controller also watches for the deletion of both.
const recheck = time.Minute

// Reconciler reconciles Projects.
type Reconciler struct {
	kit.Base
	// Quotas are the configured resource quotas: a Project gets the first one whose selector matches; a quota without a
	// selector matches all Projects.
	Quotas []controllermanagerv1alpha1.QuotaConfiguration
}

// AddToManager adds the controller to the manager.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, ControllerName)
	deletions := builder.WithPredicates(component.Deletions())
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1beta1.Project{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Namespace{}, deletions).
		Owns(&rbacv1.RoleBinding{}, builder.WithPredicates(component.DeletionsAndUpdatesIf(bindingChanged))).
		Watches(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.projectInDeletion), deletions).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// bindingChanged reports whether the role or the subjects of a RoleBinding have changed.
func bindingChanged(before, after *rbacv1.RoleBinding) bool {
	return before.RoleRef != after.RoleRef || !equality.Semantic.DeepEqual(before.Subjects, after.Subjects)
}

// projectInDeletion returns a request for the Project of an object's namespace, if the Project is being deleted.
func (r *Reconciler) projectInDeletion(ctx context.Context, obj client.Object) []reconcile.Request {
	return kit.RequestsIf(ctx, r.Client, &corev1beta1.ProjectList{}, func(project *corev1beta1.Project) bool {
		return project.DeletionTimestamp != nil && ptr.Deref(project.Spec.Namespace, "") == obj.GetNamespace()
	})
}

// Reconcile reconciles one Project.
func (r *Reconciler) Reconcile(ctx context.Context, project *corev1beta1.Project) (reconcile.Result, error) {
	if project.DeletionTimestamp != nil {
		return r.delete(ctx, project)
	}
	return reconcile.Result{}, r.reconcile(ctx, project)
}

func (r *Reconciler) reconcile(ctx context.Context, project *corev1beta1.Project) error {
	if err := operation.AddFinalizer(ctx, r.Client, project, corev1beta1.GardenerName); err != nil {
		return err
	}
	if project.Status.Phase == "" {
		if err := r.setPhase(ctx, project, corev1beta1.ProjectPending); err != nil {
			return err
		}
	}
	steps := []struct {
		doing string
		do    func(context.Context, *corev1beta1.Project) error
	}{
		{"preparing the namespace", r.reconcileNamespace},
		{"setting up the resource quota", r.reconcileQuota},
		{"setting up the roles of the members", r.reconcileRoles},
	}
	for _, step := range steps {
		if err := step.do(ctx, project); err != nil {
			return r.failed(ctx, project, corev1beta1.ProjectEventNamespaceReconcileFailed, corev1beta1.EventActionReconcile,
				fmt.Errorf("%s: %w", step.doing, err))
		}
	}
	if project.Status.Phase != corev1beta1.ProjectReady || project.Status.ObservedGeneration != project.Generation {
		r.Recorder.Eventf(project, nil, corev1.EventTypeNormal, corev1beta1.ProjectEventNamespaceReconcileSuccessful,
			corev1beta1.EventActionReconcile,
			"The namespace %q of the project is ready", *project.Spec.Namespace)
	}
	return r.setPhase(ctx, project, corev1beta1.ProjectReady)
}

// failed records an error in an event and the phase, and returns it so that the request is retried.
func (r *Reconciler) failed(ctx context.Context, project *corev1beta1.Project, reason, action string, err error) error {
	r.Recorder.Eventf(project, nil, corev1.EventTypeWarning, reason, action, "%s", err.Error())
	if phaseErr := r.setPhase(ctx, project, corev1beta1.ProjectFailed); phaseErr != nil {
		logf.FromContext(ctx).Error(phaseErr, "Setting the phase of a project")
	}
	return err
}

// setPhase sets the phase and the observed generation.
func (r *Reconciler) setPhase(ctx context.Context, project *corev1beta1.Project, phase corev1beta1.ProjectPhase) error {
	return operation.PatchStatus(ctx, r.Client, project, func(project *corev1beta1.Project) {
		project.Status.Phase, project.Status.ObservedGeneration = phase, project.Generation
	})
}

func (r *Reconciler) delete(ctx context.Context, project *corev1beta1.Project) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(project, corev1beta1.GardenerName) {
		return reconcile.Result{}, nil
	}
	if project.Spec.Namespace != nil {
		inUse, err := r.hasShoots(ctx, *project.Spec.Namespace)
		if err != nil {
			return reconcile.Result{}, err
		}
		if inUse {
			r.Recorder.Eventf(project, nil, corev1.EventTypeWarning, corev1beta1.ProjectEventNamespaceNotEmpty, corev1beta1.EventActionDelete,
				"The namespace %q cannot be released while there are Shoots in it: delete them first", *project.Spec.Namespace)
			// The controller watches for the deletion of the last Shoot.
			return reconcile.Result{RequeueAfter: recheck}, r.setPhase(ctx, project, corev1beta1.ProjectTerminating)
		}
		released, err := r.releaseNamespace(ctx, project, *project.Spec.Namespace)
		if err != nil {
			err = fmt.Errorf("releasing the namespace %q: %w", *project.Spec.Namespace, err)
			return reconcile.Result{}, r.failed(ctx, project, corev1beta1.ProjectEventNamespaceDeletionFailed, corev1beta1.EventActionDelete, err)
		}
		if !released {
			return reconcile.Result{RequeueAfter: recheck}, r.setPhase(ctx, project, corev1beta1.ProjectTerminating)
		}
	}
	return reconcile.Result{}, operation.RemoveFinalizers(ctx, r.Client, project, corev1beta1.GardenerName)
}

func (r *Reconciler) hasShoots(ctx context.Context, namespace string) (bool, error) {
	shoots := kit.MetadataList(corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	if err := r.Reader.List(ctx, shoots, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return false, fmt.Errorf("looking for Shoots in the namespace %q: %w", namespace, err)
	}
	return len(shoots.Items) > 0, nil
}
