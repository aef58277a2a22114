package conditions

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	testclock "k8s.io/utils/clock/testing"
)

func TestSetOfSeveral(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	first, later := clock.Now(), clock.Now().Add(time.Minute)
	condition := func(status corev1beta1.ConditionStatus, reason string) corev1beta1.Condition {
		return corev1beta1.Condition{Type: "A", Status: status, Reason: reason}
	}
	before, changed := Set([]corev1beta1.Condition{{Type: "B"}}, condition("True", "x"), clock)
	if !changed || len(before) != 2 || !IsTrue(before, "A") || IsTrue(before, "C") {
		t.Fatalf("%v", before)
	}
	clock.SetTime(later)
	for name, test := range map[string]struct {
		now                 corev1beta1.Condition
		changed             bool
		transition, updated time.Time
	}{
		"the same":       {condition("True", "x"), false, first, first},
		"another reason": {condition("True", "y"), true, first, later},
		"another status": {condition("False", "x"), true, later, later},
	} {
		after, changed := Set(before, test.now, clock)
		c := Get(after, "A")
		if changed != test.changed || !c.LastTransitionTime.Time.Equal(test.transition) ||
			!c.LastUpdateTime.Time.Equal(test.updated) || c.Status != test.now.Status {
			t.Errorf("%s: changed %v, %+v", name, changed, c)
		}
		if !IsTrue(before, "A") {
			t.Errorf("%s: changed what it was given", name)
		}
	}
	if left, _ := Without(before, "A"); len(left) != 1 || left[0].Type != "B" || len(before) != 2 {
		t.Errorf("%v", left)
	}
}
