package controlplane

import (
	"sync/atomic"
	"time"
)

// aftermath is how long after a server's end something that it began may still notice that it has ended.
const aftermath = 10 * time.Second

// ending counts the servers of the process that are being stopped, or were a moment ago.
var ending atomic.Int64

// Ending says whether a control plane of the process is being stopped, or was in the last ten seconds. What an API server
// does when it starts fails when it is stopped meanwhile, and Kubernetes' code then wants to end the process, in which there
// may be other control planes.
func Ending() bool { return ending.Load() > 0 }

// end has the server stop. It returns at once, and may be called again.
func (s *Server) end() {
	s.ending.Do(func() { ending.Add(1) })
	s.cancel()
}

// ended is called when the server has stopped.
func (s *Server) ended() {
	s.end() // it may have stopped by itself
	time.AfterFunc(aftermath, func() { ending.Add(-1) })
	close(s.done)
}
