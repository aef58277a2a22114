package shootstatuslabel

import (
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func shoot(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState, errors int,
	conditions ...corev1beta1.ConditionStatus) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"}}
	if kind != "" {
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: kind, State: state}
	}
	s.Status.LastErrors = make([]corev1beta1.LastError, errors)
	for _, status := range conditions {
		s.Status.Conditions = append(s.Status.Conditions, corev1beta1.Condition{Type: "x", Status: status})
	}
	return s
}

func TestStatus(t *testing.T) {
	for name, test := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  string
	}{
		"new":                          {shoot("", "", 0), Healthy},
		"creating":                     {shoot("Create", "Processing", 0, "False"), Healthy},
		"creating with error":          {shoot("Create", "Error", 1, "True"), Unhealthy},
		"created":                      {shoot("Create", "Succeeded", 0, "True"), Healthy},
		"created, unknown":             {shoot("Create", "Succeeded", 0, "True", "Unknown", "Progressing"), Unknown},
		"deleting":                     {shoot("Delete", "Processing", 0, "False"), Healthy},
		"deleting with error":          {shoot("Delete", "Error", 1), Unhealthy},
		"reconciling":                  {shoot("Reconcile", "Processing", 0, "True"), Healthy},
		"reconciling, progressing":     {shoot("Reconcile", "Processing", 0, "Progressing"), Progressing},
		"reconciling after an error":   {shoot("Reconcile", "Processing", 1, "True"), Unhealthy},
		"reconciled":                   {shoot("Reconcile", "Succeeded", 0, "True"), Healthy},
		"reconciled, not so":           {shoot("Reconcile", "Succeeded", 0, "True", "False"), Unhealthy},
		"failed":                       {shoot("Reconcile", "Failed", 1, "True"), Unhealthy},
		"waiting":                      {shoot("Reconcile", "Pending", 0, "True"), Unhealthy},
		"a condition like no other is": {shoot("Reconcile", "Succeeded", 0, "Maybe"), Unhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Status(test.shoot); got != test.want {
				t.Errorf("%s, not %s", got, test.want)
			}
			g := kittest.New(t, test.shoot)
			g.MustReconcile(reconcile.AsReconciler(g, &Reconciler{Base: g.Base()}), test.shoot)
			if got := test.shoot.Labels[constants.ShootStatus]; got != test.want {
				t.Errorf("labelled %q, not %s", got, test.want)
			}
			if mislabelled().Update(event.UpdateEvent{ObjectOld: test.shoot, ObjectNew: test.shoot}) {
				t.Error("it is looked at again")
			}
			test.shoot.Labels[constants.ShootStatus] = "else"
			if !mislabelled().Update(event.UpdateEvent{ObjectOld: test.shoot, ObjectNew: test.shoot}) {
				t.Error("a wrong label stays")
			}
		})
	}
}
