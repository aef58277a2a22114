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

var metaShootStateFinalizer = metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"}

func shootShootStateFinalizer(kind corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: *metaShootStateFinalizer.DeepCopy()}
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
		"migrating":           {shootShootStateFinalizer("Migrate", "Processing"), false, true, false},
		"migrated":            {shootShootStateFinalizer("Migrate", "Succeeded"), true, true, false},
		"restoring":           {shootShootStateFinalizer("Restore", "Processing"), false, true, false},
		"restoring failed":    {shootShootStateFinalizer("Restore", "Failed"), true, true, false},
		"restored":            {shootShootStateFinalizer("Restore", "Succeeded"), true, false, false},
		"reconciling":         {shootShootStateFinalizer("Reconcile", "Processing"), true, false, false},
		"reconciling without": {shootShootStateFinalizer("Reconcile", "Processing"), false, false, false},
		"deleting":            {shootShootStateFinalizer("Delete", "Processing"), true, true, false},
		"creating":            {shootShootStateFinalizer("Create", "Processing"), false, false, false},
		"no operation":        {shootShootStateFinalizer("", ""), true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			state := &corev1beta1.ShootState{ObjectMeta: *metaShootStateFinalizer.DeepCopy()}
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
	g.MustReconcile(reconcile.AsReconciler(g, &ShootStateFinalizer{Base: g.Base()}), shootShootStateFinalizer("Migrate", "Processing"))
}

func TestMoved(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *corev1beta1.Shoot
		want          bool
	}{
		"to migrate":            {shootShootStateFinalizer("Reconcile", "Succeeded"), shootShootStateFinalizer("Migrate", "Processing"), true},
		"still migrating":       {shootShootStateFinalizer("Migrate", "Processing"), shootShootStateFinalizer("Migrate", "Error"), false},
		"to restore":            {shootShootStateFinalizer("Migrate", "Succeeded"), shootShootStateFinalizer("Restore", "Processing"), true},
		"still restoring":       {shootShootStateFinalizer("Restore", "Processing"), shootShootStateFinalizer("Restore", "Error"), false},
		"restored":              {shootShootStateFinalizer("Restore", "Processing"), shootShootStateFinalizer("Restore", "Succeeded"), true},
		"restore to reconcile":  {shootShootStateFinalizer("Restore", "Error"), shootShootStateFinalizer("Reconcile", "Processing"), true},
		"reconciling":           {shootShootStateFinalizer("Reconcile", "Processing"), shootShootStateFinalizer("Reconcile", "Succeeded"), false},
		"before the first time": {shootShootStateFinalizer("", ""), shootShootStateFinalizer("Create", "Processing"), false},
		"to delete":             {shootShootStateFinalizer("Migrate", "Error"), shootShootStateFinalizer("Delete", "Processing"), false},
	} {
		if got := shootMoved().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
