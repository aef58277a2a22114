package controllermanager

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// projectStaleName is the name of the controller, which is Gardener's.
const projectStaleName = "project-stale"

const day = 24 * time.Hour

// These are the periods of Gardener.
const (
	// DefaultMinimumLifetime is how long a Project counts as used after it was created, and after each activity.
	DefaultMinimumLifetime = 30 * day
	// DefaultGracePeriod is how long a Project is stale before its deletion time is set.
	DefaultGracePeriod    = 14 * day
	DefaultExpirationTime = 90 * day
	// DefaultSyncPeriodProjectStale is the period of the checks.
	DefaultSyncPeriodProjectStale = 12 * time.Hour
)

// ProjectStale finds unused Projects: it records since when a Project is unused (status.staleSinceTimestamp) and,
// after a grace period, when it will be deleted (status.staleAutoDeleteTimestamp), and then deletes it.
//
// A Project is used by Shoots and BackupEntries in its namespace, and by Shoots in any namespace that use credentials
// or Quotas of its namespace through bindings. A Project also counts as used if it was created or active recently, or
// if its namespace has the annotation that skips the check. Before it deletes a Project, the controller checks again
// with the API server, not with a cache.
type ProjectStale struct {
	kit.Base
	// ExpirationTime is how long a Project is stale before it is deleted, DefaultExpirationTime by default.
	ExpirationTime time.Duration
}

// AddToManager adds the controller to the manager.
func (r *ProjectStale) AddToManager(mgr manager.Manager) error {
	r.Base = kit.NewBase(mgr, projectStaleName)
	return component.NewControllerBuilder(mgr, projectStaleName).
		For(&corev1beta1.Project{}, builder.WithPredicates(projectChanged())).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// projectChanged ignores updates of the last activity only: the Project is checked regularly anyway.
func projectChanged() predicate.Predicate {
	return component.CreationsAndUpdatesIf(func(before, after *corev1beta1.Project) bool {
		return before.Status.LastActivityTimestamp.Equal(after.Status.LastActivityTimestamp) ||
			after.Generation != after.Status.ObservedGeneration
	})
}

// Reconcile checks whether a Project is in use, and updates when it became stale and when it will be deleted.
func (r *ProjectStale) Reconcile(ctx context.Context, project *corev1beta1.Project) (reconcile.Result, error) {
	if project.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	err := r.reconcile(ctx, project)
	wait := DefaultSyncPeriodProjectStale
	if at := project.Status.StaleAutoDeleteTimestamp; at != nil && at.After(r.Clock.Now()) {
		wait = min(wait, landscapeclock.UntilDue(r.Clock, at.Time))
	}
	return component.RequeueAfter(wait, err)
}

func (r *ProjectStale) reconcile(ctx context.Context, project *corev1beta1.Project) error {
	if project.Spec.Namespace == nil {
		return nil
	}
	by, err := r.usedBy(ctx, r.Client, project)
	if err != nil {
		return err
	}
	if by != "" {
		logf.FromContext(ctx).V(1).Info("The project is not stale", "because", by)
		return r.setStatus(ctx, project, nil, nil)
	}
	if err := r.markStale(ctx, project); err != nil {
		return err
	}
	if at := project.Status.StaleAutoDeleteTimestamp; at == nil || r.Clock.Now().Before(at.Time) {
		return nil
	}
	if by, err := r.usedBy(ctx, r.Reader, project); err != nil || by != "" {
		return err
	}
	logf.FromContext(ctx).Info("Deleting a project that has been stale for too long", "staleSince", project.Status.StaleSinceTimestamp.Time)
	return r.DeleteConfirmed(ctx, project)
}

// usedBy returns why a Project counts as used, "" if it is unused.
func (r *ProjectStale) usedBy(ctx context.Context, reader client.Reader, project *corev1beta1.Project) (string, error) {
	namespace := &corev1.Namespace{}
	if err := reader.Get(ctx, types.NamespacedName{Name: *project.Spec.Namespace}, namespace); err != nil {
		return "", fmt.Errorf("reading the namespace of the project %s: %w", project.Name, err)
	}
	if skip, _ := strconv.ParseBool(namespace.Annotations[constants.ProjectSkipStaleCheck]); skip {
		return "its namespace has the annotation " + constants.ProjectSkipStaleCheck, nil
	}
	if r.lately(&metav1.Time{Time: landscapeclock.At(r.Clock, project.CreationTimestamp.Time)}) {
		return "it is young", nil
	}
	if r.lately(project.Status.LastActivityTimestamp) {
		return "it was active lately", nil
	}
	by, err := (&projectUse{reader: reader, namespace: namespace.Name}).by(ctx)
	if err != nil {
		return "", fmt.Errorf("looking for what uses the project %s: %w", project.Name, err)
	}
	return by, nil
}

func (r *ProjectStale) lately(t *metav1.Time) bool {
	return t != nil && t.Add(DefaultMinimumLifetime).After(r.Clock.Now())
}

// markStale records since when the Project is stale and, after the grace period, when it will be deleted. The deletion
// time never becomes earlier, because users may rely on it.
func (r *ProjectStale) markStale(ctx context.Context, project *corev1beta1.Project) error {
	since := cmp.Or(project.Status.StaleSinceTimestamp, &metav1.Time{Time: r.Clock.Now()})
	if since.Add(DefaultGracePeriod).After(r.Clock.Now()) {
		return r.setStatus(ctx, project, since, nil)
	}
	at := &metav1.Time{Time: since.Add(cmp.Or(r.ExpirationTime, DefaultExpirationTime))}
	if said := project.Status.StaleAutoDeleteTimestamp; said != nil && at.Before(said) {
		at = said
	}
	return r.setStatus(ctx, project, since, at)
}

func (r *ProjectStale) setStatus(ctx context.Context, project *corev1beta1.Project, since, autoDelete *metav1.Time) error {
	return client.IgnoreNotFound(operation.PatchStatus(ctx, r.Client, project, func(project *corev1beta1.Project) {
		project.Status.StaleSinceTimestamp, project.Status.StaleAutoDeleteTimestamp = since, autoDelete
	}))
}
