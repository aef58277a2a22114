package garbage

import (
	"slices"
	"testing"
	"time"
)

// TestLoad lets many requests come and go.
func TestLoad(t *testing.T) {
	var percents []int
	var waiting []func()
	c := collector{
		set:   func(percent int) { percents = append(percents, percent) },
		after: func(_ time.Duration, f func()) { waiting = append(waiting, f) },
	}
	later := func() {
		t.Helper()
		if len(waiting) != 1 {
			t.Fatalf("%d timers wait, one expected", len(waiting))
		}
		f := waiting[0]
		waiting = nil
		f()
	}
	now := time.Unix(0, 0)
	c.reportLoad(now) // no landscape yet
	c.setUsual(startPercent)
	c.reportLoad(now)
	c.setUsual(idlePercent) // the load goes on
	c.reportLoad(now.Add(time.Millisecond))
	later() // there was a call since
	later()
	if len(waiting) != 0 {
		t.Error("a timer goes on for ever")
	}
	c.reportLoad(now.Add(time.Minute))
	later()
	if want := []int{startPercent, loadPercent, idlePercent, loadPercent, idlePercent}; !slices.Equal(percents, want) {
		t.Errorf("the percentages were %v, %v expected", percents, want)
	}
}
