// Package garbage sets how much garbage the process accumulates before it is collected. It imports nothing of the
// project.
package garbage

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// startPercent is the percentage of garbage during the start: most of what is allocated then is garbage at its end,
	// and frequent collections cost time.
	startPercent = 140
	// idlePercent is the percentage after the start, when most of the memory is in API servers that change little.
	// Temporary objects leave holes that stay: at 40, a further shoot takes a tenth more.
	idlePercent = 25
	// loadPercent is the percentage while many Pods start or much data is forwarded. At 25, garbage collection takes a
	// third of the processors' time then.
	loadPercent = 150
	// loadPeriod is how long loadPercent stays after the last call of ReportLoad; it can be twice as long.
	loadPeriod = time.Second
	// variable is Go's own environment variable. If it is set, the percentage does not change.
	variable = "GOGC"
)

// TuneForStart sets the percentage for the start. Call it before much is allocated.
func TuneForStart() { process.setUsual(startPercent) }

// TuneForIdle sets the percentage for the time after the start, and returns the garbage of the start to the system.
func TuneForIdle() {
	process.setUsual(idlePercent)
	if os.Getenv(variable) == "" {
		go debug.FreeOSMemory()
	}
}

// ReportLoad raises the percentage for one or two seconds, if there has been load for the given duration: a second
// without a call ends it. Call it as often as needed while Pods start or much data is forwarded.
func ReportLoad(after time.Duration) { process.reportLoad(time.Now(), after) }

var process = collector{set: set, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }}

// collector decides on the percentage.
type collector struct {
	set   func(percent int)
	after func(time.Duration, func())

	mu     sync.Mutex
	usual  int
	since  time.Time // when the load began
	last   time.Time // the last call of reportLoad
	raised bool
}

func (c *collector) setUsual(percent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usual = percent
	if !c.raised {
		c.set(percent)
	}
}

func (c *collector) reportLoad(now time.Time, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.last) > loadPeriod {
		c.since = now
	}
	c.last = now
	if c.raised || now.Sub(c.since) < after || c.usual >= loadPercent || c.usual == 0 { // 0 if this process is no landscape
		return
	}
	c.raised = true
	c.set(loadPercent)
	c.after(loadPeriod, func() { c.endLoad(now) })
}

// endLoad goes back to the usual percentage if reportLoad was not called since.
func (c *collector) endLoad(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.last; last.After(since) {
		c.after(loadPeriod, func() { c.endLoad(last) })
		return
	}
	c.raised = false
	c.set(c.usual)
}

func set(percent int) {
	if os.Getenv(variable) == "" {
		debug.SetGCPercent(percent)
	}
}
