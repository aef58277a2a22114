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
	// starting is the percentage of garbage during the start: most of what is allocated then is garbage at its end,
	// and frequent collections cost time.
	starting = 100
	// resting is the percentage after the start, when most of the memory is in API servers that change little.
	// Temporary objects leave holes that stay: at 40, a further shoot takes a tenth more.
	resting = 25
	// crowded is the percentage while many requests are answered at a time. At 25, garbage collection takes a third
	// of the processors' time then.
	crowded = 150
	// quiet is how long crowded stays after the last call of Crowd; it can be twice as long.
	quiet = time.Second
	// variable is Go's own environment variable. If it is set, the percentage does not change.
	variable = "GOGC"
)

// TuneForStart sets the percentage for the start. Call it before much is allocated.
func TuneForStart() { process.begin(starting) }

// TuneForIdle sets the percentage for the time after the start.
func TuneForIdle() { process.begin(resting) }

// Crowd raises the percentage while many requests are answered. Call it for each of them, as often as needed. The
// percentage goes back one or two seconds after the last call.
func Crowd() { process.crowd(time.Now()) }

var process = collector{set: set, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }}

// collector decides on the percentage.
type collector struct {
	set   func(percent int)
	after func(time.Duration, func())

	mu     sync.Mutex
	usual  int
	last   time.Time // the last call of crowd
	raised bool
}

func (c *collector) begin(percent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usual = percent
	if !c.raised {
		c.set(percent)
	}
}

func (c *collector) crowd(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = now
	if c.raised || c.usual >= crowded || c.usual == 0 { // TuneForStart was not called: this process is no landscape
		return
	}
	c.raised = true
	c.set(crowded)
	c.after(quiet, func() { c.look(now) })
}

// look goes back to the usual percentage if crowd was not called since.
func (c *collector) look(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.last; last.After(since) {
		c.after(quiet, func() { c.look(last) })
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
