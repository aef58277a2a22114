package shootstatefinalizer

import (
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

var meta = metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"}

func shoot(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: *meta.DeepCopy()}
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
		"migrating":           {shoot("Migrate", "Processing"), false, true, false},
		"migrated":            {shoot("Migrate", "Succeeded"), true, true, false},
		"restoring":           {shoot("Restore", "Processing"), false, true, false},
		"restoring failed":    {shoot("Restore", "Failed"), true, true, false},
		"restored":            {shoot("Restore", "Succeeded"), true, false, false},
		"reconciling":         {shoot("Reconcile", "Processing"), true, false, false},
		"reconciling without": {shoot("Reconcile", "Processing"), false, false, false},
		"deleting":            {shoot("Delete", "Processing"), true, true, false},
		"creating":            {shoot("Create", "Processing"), false, false, false},
		"no operation":        {shoot("", ""), true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			state := &corev1beta1.ShootState{ObjectMeta: *meta.DeepCopy()}
			if test.before {
				state.Finalizers = []string{Finalizer}
			}
			g := kittest.New(t, state, test.shoot)
			if _, err := g.Reconcile(reconcile.AsReconciler(g, &Reconciler{Base: g.Base()}), state); (err != nil) != test.fail {
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
	g.MustReconcile(reconcile.AsReconciler(g, &Reconciler{Base: g.Base()}), shoot("Migrate", "Processing"))
}

func TestMoved(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *corev1beta1.Shoot
		want          bool
	}{
		"to migrate":            {shoot("Reconcile", "Succeeded"), shoot("Migrate", "Processing"), true},
		"still migrating":       {shoot("Migrate", "Processing"), shoot("Migrate", "Error"), false},
		"to restore":            {shoot("Migrate", "Succeeded"), shoot("Restore", "Processing"), true},
		"still restoring":       {shoot("Restore", "Processing"), shoot("Restore", "Error"), false},
		"restored":              {shoot("Restore", "Processing"), shoot("Restore", "Succeeded"), true},
		"restore to reconcile":  {shoot("Restore", "Error"), shoot("Reconcile", "Processing"), true},
		"reconciling":           {shoot("Reconcile", "Processing"), shoot("Reconcile", "Succeeded"), false},
		"before the first time": {shoot("", ""), shoot("Create", "Processing"), false},
		"to delete":             {shoot("Migrate", "Error"), shoot("Delete", "Processing"), false},
	} {
		if got := moved().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
