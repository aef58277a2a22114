package cloud

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestTraffic verifies that much traffic in a short time is reported, and that the same traffic in a longer time is
// not.
func TestTraffic(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	told := 0
	traffic := newTraffic(clk)
	traffic.reportLoad = func() { told++ }
	for range 16 {
		clk.Step(100 * time.Millisecond)
		traffic.count(muchTraffic / 8)
	}
	if told != 2 {
		t.Errorf("told %d times, not twice", told)
	}
	for range 16 {
		clk.Step(200 * time.Millisecond)
		traffic.count(muchTraffic / 8)
	}
	if told != 2 {
		t.Errorf("told %d times about little", told-2)
	}
}
