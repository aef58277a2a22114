package finalizers

import (
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestWhichUpdatesCount(t *testing.T) {
	withGeneration := func(generation int64, changes ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		obj := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: generation, Finalizers: []string{"gardener"}}}
		for _, change := range changes {
			change(obj)
		}
		return obj
	}
	for name, test := range map[string]struct {
		before, after       *corev1beta1.Shoot
		changed, mayRelease bool
	}{
		"status":             {withGeneration(1), withGeneration(1), false, false},
		"specification":      {withGeneration(1), withGeneration(2), true, true},
		"without generation": {withGeneration(0), withGeneration(0), true, true},
		"deletion": {withGeneration(1),
			withGeneration(1, func(s *corev1beta1.Shoot) { s.DeletionTimestamp = ptr.To(metav1.Now()) }), true, false},
		"finalizer taken": {withGeneration(1), withGeneration(1, func(s *corev1beta1.Shoot) { s.Finalizers = nil }), true, false},
	} {
		e := event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}
		if got := changed().Update(e); got != test.changed {
			t.Errorf("%s: changed %v", name, got)
		}
		if got := mayRelease().Update(e); got != test.mayRelease {
			t.Errorf("%s: mayRelease %v", name, got)
		}
	}
	if mayRelease().Create(event.CreateEvent{Object: withGeneration(1)}) ||
		!mayRelease().Delete(event.DeleteEvent{Object: withGeneration(1)}) {
		t.Error("only what goes releases")
	}
}
