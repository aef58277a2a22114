package managedseed

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestSeedChanged(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_800_000_000, 0))
	for what, c := range map[string]struct {
		change func(*corev1beta1.Seed)
		counts bool
	}{
		"nothing":       {func(*corev1beta1.Seed) {}, false},
		"well again":    {func(s *corev1beta1.Seed) { s.Status.Conditions = []corev1beta1.Condition{{}} }, false},
		"specification": {func(s *corev1beta1.Seed) { s.Generation++ }, true},
		"deletion":      {func(s *corev1beta1.Seed) { s.DeletionTimestamp = &at }, true},
		"certificate":   {func(s *corev1beta1.Seed) { s.Status.ClientCertificateExpirationTimestamp = &at }, true},
	} {
		seed := &corev1beta1.Seed{}
		c.change(seed)
		if got := seedChanged().Update(event.UpdateEvent{ObjectOld: &corev1beta1.Seed{}, ObjectNew: seed}); got != c.counts {
			t.Errorf("%s: %v", what, got)
		}
	}
	if !seedChanged().Create(event.CreateEvent{Object: &corev1beta1.Seed{}}) ||
		seedChanged().Create(event.CreateEvent{Object: &corev1beta1.Seed{}, IsInInitialList: true}) {
		t.Error("Seeds count when they come, not when the gardenlet does")
	}
	if requests := ofSeed(t.Context(), &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); len(requests) != 1 ||
		requests[0].NamespacedName != (client.ObjectKey{Namespace: "garden", Name: "a"}) {
		t.Errorf("%v", requests)
	}
}
