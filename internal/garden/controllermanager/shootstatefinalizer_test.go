package controllermanager

import (
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

var stateMeta = metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"}

func shootInOperation(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: *stateMeta.DeepCopy()}
	if kind != "" {
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: kind, State: state}
	}
	return s
}

func TestKeepsDuringMigration(t *testing.T) {
	for name, test := range map[string]struct {
		shoot       *corev1beta1.Shoot
		before      bool
		after, fail bool
	}{
		"migrating":           {shootInOperation("Migrate", "Processing"), false, true, false},
		"migrated":            {shootInOperation("Migrate", "Succeeded"), true, true, false},
		"restoring":           {shootInOperation("Restore", "Processing"), false, true, false},
		"restoring failed":    {shootInOperation("Restore", "Failed"), true, true, false},
		"restored":            {shootInOperation("Restore", "Succeeded"), true, false, false},
		"reconciling":         {shootInOperation("Reconcile", "Processing"), true, false, false},
		"reconciling without": {shootInOperation("Reconcile", "Processing"), false, false, false},
		"deleting":            {shootInOperation("Delete", "Processing"), true, true, false},
		"creating":            {shootInOperation("Create", "Processing"), false, false, false},
		"no operation":        {shootInOperation("", ""), true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			state := &corev1beta1.ShootState{ObjectMeta: *stateMeta.DeepCopy()}
			if test.before {
				state.Finalizers = []string{Finalizer}
			}
			g := kittest.New(t, state, test.shoot)
			if _, err := g.Reconcile(reconcile.AsReconciler(g, &ShootStateFinalizer{Base: g.Base()}), state); (err != nil) != test.fail {
				t.Fatal(err)
			}
			if g.Exists(state); controllerutil.ContainsFinalizer(state, Finalizer) != test.after {
				t.Errorf("finalizers %v", state.Finalizers)
			}
		})
	}
}

func TestWithoutShootState(t *testing.T) {
	g := kittest.New(t)
	g.MustReconcile(reconcile.AsReconciler(g, &ShootStateFinalizer{Base: g.Base()}), shootInOperation("Migrate", "Processing"))
}

func TestMoved(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *corev1beta1.Shoot
		want          bool
	}{
		"to migrate":            {shootInOperation("Reconcile", "Succeeded"), shootInOperation("Migrate", "Processing"), true},
		"still migrating":       {shootInOperation("Migrate", "Processing"), shootInOperation("Migrate", "Error"), false},
		"to restore":            {shootInOperation("Migrate", "Succeeded"), shootInOperation("Restore", "Processing"), true},
		"still restoring":       {shootInOperation("Restore", "Processing"), shootInOperation("Restore", "Error"), false},
		"restored":              {shootInOperation("Restore", "Processing"), shootInOperation("Restore", "Succeeded"), true},
		"restore to reconcile":  {shootInOperation("Restore", "Error"), shootInOperation("Reconcile", "Processing"), true},
		"reconciling":           {shootInOperation("Reconcile", "Processing"), shootInOperation("Reconcile", "Succeeded"), false},
		"before the first time": {shootInOperation("", ""), shootInOperation("Create", "Processing"), false},
		"to delete":             {shootInOperation("Migrate", "Error"), shootInOperation("Delete", "Processing"), false},
	} {
		if got := shootMoved().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
