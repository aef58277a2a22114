package managedseed

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestEnqueue(t *testing.T) {
	const nothing, atOnce, later = 0, 1, 2
	deleted := &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
	for what, c := range map[string]struct {
		generation, observed int64
		deleted              *metav1.Time
		jitterUpdates        bool
		created, updated     int
	}{
		"new":                    {1, 0, nil, true, atOnce, atOnce},
		"as it was":              {2, 2, nil, false, later, nothing},
		"changed":                {3, 2, nil, false, atOnce, atOnce},
		"changed, with jitter":   {3, 2, nil, true, later, later},
		"being deleted":          {3, 2, deleted, true, atOnce, atOnce},
		"being deleted, waiting": {3, 3, deleted, true, atOnce, nothing},
	} {
		obj := &seedmanagementv1alpha1.ManagedSeed{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: c.generation, DeletionTimestamp: c.deleted},
			Status:     seedmanagementv1alpha1.ManagedSeedStatus{ObservedGeneration: c.observed},
		}
		r := &Reconciler{JitterUpdates: c.jitterUpdates}
		for op, want := range map[string]int{"create": c.created, "update": c.updated} {
			q := &queue{}
			if op == "create" {
				r.enqueue().Create(t.Context(), event.CreateEvent{Object: obj}, q)
			} else {
				r.enqueue().Update(t.Context(), event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}, q)
			}
			if got := q.added + 2*q.later; got != want {
				t.Errorf("%s, %s: %d, not %d", what, op, got, want)
			}
		}
	}
}

type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added, later int
}

func (q *queue) Add(reconcile.Request) { q.added++ }

func (q *queue) AddAfter(_ reconcile.Request, d time.Duration) {
	if d >= 0 && d <= DefaultSyncJitterPeriod {
		q.later++
	}
}

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
