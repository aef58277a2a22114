package operation

import (
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestType(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		asks     string
		deleted  *metav1.Time
		last     *corev1beta1.LastOperation
		expected corev1beta1.LastOperationType
	}{
		"new":               {expected: "Create"},
		"creation failed":   {last: &corev1beta1.LastOperation{Type: "Create", State: "Error"}, expected: "Create"},
		"created":           {last: &corev1beta1.LastOperation{Type: "Create", State: "Succeeded"}, expected: "Reconcile"},
		"migration failed":  {last: &corev1beta1.LastOperation{Type: "Migrate", State: "Error"}, expected: "Migrate"},
		"restoration goes":  {last: &corev1beta1.LastOperation{Type: "Restore", State: "Processing"}, expected: "Restore"},
		"restored":          {last: &corev1beta1.LastOperation{Type: "Restore", State: "Succeeded"}, expected: "Reconcile"},
		"restore":           {asks: "restore", expected: "Restore"},
		"migrate":           {asks: "migrate", deleted: &now, expected: "Migrate"},
		"delete":            {asks: "restore", deleted: &now, expected: "Delete"},
		"reconcile, failed": {asks: "reconcile", last: &corev1beta1.LastOperation{Type: "Reconcile", State: "Error"}, expected: "Reconcile"},
	} {
		obj := &metav1.ObjectMeta{DeletionTimestamp: test.deleted, Annotations: map[string]string{"gardener.cloud/operation": test.asks}}
		if got := Type(obj, test.last); got != test.expected {
			t.Errorf("%s: %s, want %s", name, got, test.expected)
		}
	}
}
