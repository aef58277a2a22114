package operation

import (
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
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
		if got := DueOperationType(obj, test.last); got != test.expected {
			t.Errorf("%s: %s, want %s", name, got, test.expected)
		}
	}
}

func TestEnded(t *testing.T) {
	extension := func(asks string, t corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *extensionsv1alpha1.BackupEntry {
		extension := &extensionsv1alpha1.BackupEntry{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/operation": asks}}}
		extension.Status.LastOperation = &corev1beta1.LastOperation{Type: t, State: state}
		return extension
	}
	for name, test := range map[string]struct {
		before, after *extensionsv1alpha1.BackupEntry
		expected      bool
	}{
		"goes on":                       {extension("", "Create", "Processing"), extension("", "Create", "Processing"), false},
		"succeeded":                     {extension("", "Create", "Processing"), extension("", "Create", "Succeeded"), true},
		"failed":                        {extension("", "Create", "Processing"), extension("", "Create", "Error"), true},
		"something else":                {extension("", "Create", "Succeeded"), extension("", "Create", "Succeeded"), false},
		"asked to reconcile":            {extension("", "Create", "Succeeded"), extension("reconcile", "Create", "Succeeded"), false},
		"begun to reconcile":            {extension("reconcile", "Reconcile", "Processing"), extension("", "Reconcile", "Processing"), false},
		"asked to restore":              {extension("wait-for-state", "Create", "Succeeded"), extension("restore", "Create", "Succeeded"), false},
		"restored, and still asked":     {extension("restore", "Restore", "Processing"), extension("restore", "Restore", "Succeeded"), true},
		"restored, and asked no more":   {extension("restore", "Restore", "Succeeded"), extension("", "Restore", "Succeeded"), true},
		"restoration failed":            {extension("restore", "Restore", "Processing"), extension("restore", "Restore", "Error"), true},
		"migrated, and asked no more":   {extension("migrate", "Migrate", "Succeeded"), extension("", "Migrate", "Succeeded"), true},
		"restored, then something else": {extension("", "Restore", "Succeeded"), extension("", "Restore", "Succeeded"), false},
	} {
		update := event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}
		if got := OperationEndedPredicate(OfExtension).Update(update); got != test.expected {
			t.Errorf("%s: %v", name, got)
		}
	}
}
