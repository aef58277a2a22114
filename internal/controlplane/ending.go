package controlplane

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// aftermath is how long after an end something that a server began may still notice it. Some of it tries for
// thirty seconds.
const aftermath = time.Minute

// ending counts what of the process is being stopped, or was a moment ago: servers, and whole landscapes.
var ending atomic.Int64

// BeginEnding notes that servers, or what they need, are about to be stopped. EndEnding is to be called when they have been.
func BeginEnding() { ending.Add(1) }

// EndEnding notes the end of what BeginEnding was called for. It counts for a minute more.
func EndEnding() { time.AfterFunc(aftermath, func() { ending.Add(-1) }) }

// UnlessEnding is exit, for klog.OsExit, but for when something is being stopped, or was in the last minute. What an API server
// does when it starts fails when it is stopped meanwhile, and Kubernetes' code then wants to end the process, in which there
// may be other control planes.
func UnlessEnding(exit func(status int)) func(status int) {
	return func(status int) {
		if ending.Load() == 0 {
			exit(status)
		}
	}
}

// outliveEndings is for processes that have not replaced klog.OsExit themselves.
var outliveEndings = sync.OnceFunc(func() { klog.OsExit = UnlessEnding(klog.OsExit) })

// end has the server stop. It returns at once, and may be called again.
func (s *Server) end() {
	s.ending.Do(BeginEnding)
	s.cancel()
}

// ended is called when the server has stopped.
func (s *Server) ended() {
	s.end() // it may have stopped by itself
	EndEnding()
	close(s.done)
}
