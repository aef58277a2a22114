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

// newFor is how long something that comes to be seen counts as new.
const newFor = time.Hour

// Reconciler writes down the activity of Projects.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
}

// Reconcile writes down that there is activity in a Project now.
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
