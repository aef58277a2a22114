package controllermanager

import (
	"context"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// projectActivityName is the name of the controller, which is Gardener's.
const projectActivityName = "project-activity"

// activityNewFor is the age up to which an object that the controller sees for the first time counts as new.
const activityNewFor = time.Hour

// ProjectActivity records the last activity of a Project in status.lastActivityTimestamp: whenever a Shoot, a
// BackupEntry, or a Quota or credentials to which a binding refers are created, changed or deleted in its namespace.
//
// An object that is older than an hour when the controller first sees it is no activity: it existed before the
// controller started. The controller watches only the metadata of Secrets and InternalSecrets.
type ProjectActivity struct {
	kit.Base
}

// AddToManager adds the controller to the manager.
func (r *ProjectActivity) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, projectActivityName)
	toProject := handler.EnqueueRequestsFromMapFunc(r.projectOf)
	respecified := builder.WithPredicates(r.activity(), predicate.GenerationChangedPredicate{})
	referred := builder.WithPredicates(r.activity(), kit.IsOrWas(isReferred))
	return component.NewControllerBuilder(mgr, projectActivityName).
		Watches(&corev1beta1.Shoot{}, toProject, respecified).
		Watches(&corev1beta1.BackupEntry{}, toProject, respecified).
		Watches(&corev1beta1.Quota{}, toProject, referred).
		WatchesMetadata(&corev1.Secret{}, toProject, referred).
		WatchesMetadata(&corev1beta1.InternalSecret{}, toProject, referred).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// activity passes events that count as activity: creations of recent objects, real updates, and deletions.
func (r *ProjectActivity) activity() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return r.Clock.Since(landscapeclock.At(r.Clock, e.Object.GetCreationTimestamp().Time)) <= activityNewFor
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	}
}

func isReferred(obj client.Object) bool {
	_, bySecretBinding := obj.GetLabels()[constants.LabelSecretBindingReference]
	_, byCredentialsBinding := obj.GetLabels()[constants.LabelCredentialsBindingReference]
	return bySecretBinding || byCredentialsBinding
}

// projectOf returns a request for the Project of an object's namespace.
func (r *ProjectActivity) projectOf(ctx context.Context, obj client.Object) []reconcile.Request {
	return kit.RequestsIf(ctx, r.Client, &corev1beta1.ProjectList{}, func(project *corev1beta1.Project) bool {
		return ptr.Deref(project.Spec.Namespace, "") == obj.GetNamespace()
	})
}

// Reconcile sets the last activity of a Project to now.
func (r *ProjectActivity) Reconcile(ctx context.Context, project *corev1beta1.Project) (reconcile.Result, error) {
	return reconcile.Result{}, client.IgnoreNotFound(operation.PatchStatus(ctx, r.Client, project, func(project *corev1beta1.Project) {
		project.Status.LastActivityTimestamp = &metav1.Time{Time: r.Clock.Now()}
	}))
}
