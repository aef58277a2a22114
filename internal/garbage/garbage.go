package garbage

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// starting is the percentage of garbage with which the process begins: most of what is made then is needed no more at its
	// end, and to collect it often costs time.
	starting = 100
	// resting is that of afterwards, when most of the memory is in API servers that change little. What is made in between
	// leaves holes that stay: at 40 a further shoot takes a tenth more.
	resting = 25
	// crowded is that while many requests are answered at a time. At 25 a third of the processors' time goes into garbage then.
	crowded = 150
	// quiet is how long after the last of many requests garbage may lie; it can be twice as long.
	quiet = time.Second
	// variable is Go's own. What it says counts.
	variable = "GOGC"
)

// Working is called when much is about to be made.
func Working() { process.begin(starting) }

// Resting is called when that is done.
func Resting() { process.begin(resting) }

// Crowd is called whenever many requests are being answered. What it changes goes back one or two seconds after the last call. It may
// be called often.
func Crowd() { process.crowd(time.Now()) }

var process = collector{set: set, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }}

// collector knows why how much garbage lies.
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
	if c.raised || c.usual >= crowded || c.usual == 0 { // Start was not called: this process is no landscape
		return
	}
	c.raised = true
	c.set(crowded)
	c.after(quiet, func() { c.look(now) })
}

// look goes back if there was no other call since.
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
