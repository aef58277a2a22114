package operation

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOverdue checks that an extension that is working on a deletion has more time than one that is not.
func TestOverdue(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		last *corev1beta1.LastOperation
		work bool
	}{
		"has said nothing": {},
		"said it before": {last: &corev1beta1.LastOperation{Type: "Delete", State: "Processing",
			LastUpdateTime: metav1.NewTime(now.Add(-time.Minute))}},
		"fails":             {last: &corev1beta1.LastOperation{Type: "Delete", State: "Error", LastUpdateTime: metav1.NewTime(now)}},
		"does another deed": {last: &corev1beta1.LastOperation{Type: "Reconcile", State: "Processing", LastUpdateTime: metav1.NewTime(now)}},
		"is at work": {last: &corev1beta1.LastOperation{Type: "Delete", State: "Processing", LastUpdateTime: metav1.NewTime(now)},
			work: true},
	} {
		worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{"gardener.cloud/timestamp": now.Add(time.Millisecond).Format(time.RFC3339Nano)}}}
		worker.Status.LastOperation = test.last
		grace := ForceGrace
		if test.work {
			grace = ForceLimit
		}
		asked := AskedAt(worker)
		if ForceDeletionTimedOut(worker, asked.Add(grace-1)) || !ForceDeletionTimedOut(worker, asked.Add(grace)) {
			t.Errorf("%s: it is not overdue after %s", name, grace)
		}
	}
}
