package shootplane

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestBackoffEndsBetweenReconcileAndWait checks that wait waits for a backoff that was not over for reconcile.
func TestBackoffEndsBetweenReconcileAndWait(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := backoff{clock: clock}
	b.extend()
	clock.Step(retryFirst - 1)
	now := clock.Now()
	clock.Step(1)
	if b.isOver(now) || b.left(now) == nil {
		t.Errorf("over: %t, waited for: %t", b.isOver(now), b.left(now) != nil)
	}
	if now = clock.Now(); !b.isOver(now) || b.left(now) != nil {
		t.Errorf("afterwards over: %t, waited for: %t", b.isOver(now), b.left(now) != nil)
	}
}
