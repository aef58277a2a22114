package process

import (
	"testing"
	"time"
)

// The rate is that since the start of the process, and later that of the last whole window.
func TestCPURate(t *testing.T) {
	begin := time.Unix(0, 0)
	r := cpuRate{begin: begin}
	for _, sample := range []struct {
		after, used time.Duration
		rate        float64
	}{
		{time.Second, time.Second / 2, 0.5},
		{cpuWindow, cpuWindow / 10, 0.1},
		{cpuWindow + time.Second, cpuWindow / 2, 0.1},
		{2 * cpuWindow, cpuWindow*2 + cpuWindow/10, 2},
		{3 * cpuWindow, cpuWindow, 0}, // a process of the group has ended
	} {
		r.sample(begin.Add(sample.after), sample.used)
		if r.rate != sample.rate {
			t.Errorf("after %s, the rate is %v, not %v", sample.after, r.rate, sample.rate)
		}
	}
}
