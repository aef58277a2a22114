package controlplane

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// aftermath is how long after a server's end something that it began may still notice that it has ended. Some of it tries for
// thirty seconds.
const aftermath = time.Minute

// ending counts the servers of the process that are being stopped, or were a moment ago.
var ending atomic.Int64

// Ending says whether a control plane of the process is being stopped, or was in the last minute. What an API server
// does when it starts fails when it is stopped meanwhile, and Kubernetes' code then wants to end the process, in which there
// may be other control planes.
func Ending() bool { return ending.Load() > 0 }

// outliveEndings has the process go on when Kubernetes' code wants to end it because a server is being stopped. Who replaces
// klog.OsExit later has to do the same.
var outliveEndings = sync.OnceFunc(func() {
	exit := klog.OsExit
	klog.OsExit = func(status int) {
		if !Ending() {
			exit(status)
		}
	}
})

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
