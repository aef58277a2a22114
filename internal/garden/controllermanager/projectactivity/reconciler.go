package projectactivity

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// newFor is the age up to which an object that the controller sees for the first time counts as new.
const newFor = time.Hour

// Reconciler records the activity of Projects.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
}

// Reconcile sets the last activity of a Project to now.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	project := &corev1beta1.Project{}
	if err := r.Client.Get(ctx, request.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := project.DeepCopy()
	project.Status.LastActivityTimestamp = &metav1.Time{Time: r.Clock.Now()}
	if err := r.Client.Status().Patch(ctx, project, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("writing the last activity of the project %s: %w", project.Name, err)
	}
	return reconcile.Result{}, nil
}
