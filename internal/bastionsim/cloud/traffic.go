package cloud

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
	"github.com/gardenlite/gardenlite/internal/garbage"
)

const (
	// muchTraffic is how many bytes within shortTime are much traffic. The buffers that they pass through become
	// garbage.
	muchTraffic = 8 << 20
	shortTime   = time.Second
)

// traffic makes garbage collection rarer while the bastions forward much data.
type traffic struct {
	clock clock.PassiveClock
	much  func()

	mu    sync.Mutex
	moved int
	since time.Time
}

func newTraffic(clock clock.PassiveClock) *traffic {
	return &traffic{clock: clock, much: garbage.Crowd, since: clock.Now()}
}

func (t *traffic) count(bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.moved += bytes; t.moved < muchTraffic {
		return
	}
	now := t.clock.Now()
	if now.Sub(t.since) < shortTime {
		t.much()
	}
	t.moved, t.since = 0, now
}

// countedConn counts the bytes of a connection through a bastion.
type countedConn struct {
	*memnet.Conn
	traffic *traffic
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.traffic.count(n)
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.count(n)
	return n, err
}
