package garbage

import (
	"slices"
	"testing"
	"time"
)

// TestLoad lets load come and go.
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
	now, delay := time.Unix(0, 0), 5*time.Second
	load := func(d time.Duration) {
		for end := now.Add(d); !now.After(end); now = now.Add(loadPeriod) {
			c.reportLoad(now, delay)
		}
	}
	load(time.Minute) // no landscape yet
	c.setUsual(startPercent)
	load(time.Minute)
	c.setUsual(idlePercent) // the load goes on
	later()                 // there was a call since
	later()
	if len(waiting) != 0 {
		t.Error("a timer goes on for ever")
	}
	now = now.Add(time.Minute)
	load(delay - loadPeriod) // too short
	now = now.Add(time.Minute)
	load(delay)
	later()
	if want := []int{startPercent, loadPercent, idlePercent, loadPercent, idlePercent}; !slices.Equal(percents, want) {
		t.Errorf("the percentages were %v, %v expected", percents, want)
	}
}
