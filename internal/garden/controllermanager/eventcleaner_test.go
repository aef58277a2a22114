package controllermanager

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func TestDeletesOldEvents(t *testing.T) {
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(kittest.Start.Add(-d)) }
	const old = 2 * time.Hour
	for name, test := range map[string]struct {
		change func(*corev1.Event)
		stays  bool
		again  time.Duration
	}{
		"old":            {func(*corev1.Event) {}, false, 0},
		"exactly":        {func(e *corev1.Event) { e.CreationTimestamp = ago(time.Hour) }, false, 0},
		"new":            {func(e *corev1.Event) { e.CreationTimestamp = ago(time.Minute) }, true, 59 * time.Minute},
		"happened again": {func(e *corev1.Event) { e.LastTimestamp = ago(time.Minute) }, true, 59 * time.Minute},
		"in a series": {func(e *corev1.Event) {
			e.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(ago(time.Minute).Time)}
		}, true, 59 * time.Minute},
		"with another time": {func(e *corev1.Event) { e.EventTime = metav1.NewMicroTime(ago(time.Minute).Time) }, true, 59 * time.Minute},
		"of a Shoot":        {func(e *corev1.Event) { e.InvolvedObject.Kind = "Shoot" }, true, 0},
		"of another Shoot":  {func(e *corev1.Event) { e.InvolvedObject.Kind, e.InvolvedObject.APIVersion = "Shoot", "example.org/v1" }, false, 0},
		"of no version":     {func(e *corev1.Event) { e.InvolvedObject = corev1.ObjectReference{Kind: "Shoot"} }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			event := &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "garden-dev", Name: "x", UID: "1", CreationTimestamp: ago(old)},
				InvolvedObject: corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Seed"},
			}
			test.change(event)
			g := kittest.New(t, event)
			r := &EventCleaner{Base: g.Base()}
			if result := g.MustReconcile(r, event); result.RequeueAfter != test.again {
				t.Errorf("again after %s", result.RequeueAfter)
			}
			if g.Exists(event) != test.stays {
				t.Errorf("stays: %v", !test.stays)
			}
		})
	}
}
