package quirks

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// aftermath is how long after an end something that a server began may still notice it. Some of it tries for
// thirty seconds.
const aftermath = time.Minute

// shutdowns counts what of the process is being stopped, or was a moment ago: servers, and whole landscapes.
var shutdowns atomic.Int64

// BeginShutdown notes that servers, or what they need, are about to be stopped. EndShutdown is to be called when they have been.
func BeginShutdown() { shutdowns.Add(1) }

// EndShutdown notes the end of what BeginShutdown was called for. It counts for a minute more.
func EndShutdown() { time.AfterFunc(aftermath, func() { shutdowns.Add(-1) }) }

// UnlessShutdown is exit, for klog.OsExit, but for when something is being stopped, or was in the last minute. What an API server
// does when it starts fails when it is stopped meanwhile, and Kubernetes' code then wants to end the process, in which there
// may be other control planes.
//
// Upstream: runPostStartHook in
// https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/server/hooks.go
func UnlessShutdown(exit func(status int)) func(status int) {
	return func(status int) {
		if !ShuttingDown() {
			exit(status)
		}
	}
}

// OutliveShutdowns is for processes that have not replaced klog.OsExit themselves.
var OutliveShutdowns = sync.OnceFunc(func() { klog.OsExit = UnlessShutdown(klog.OsExit) })

// ShuttingDown says whether something is being stopped, or was in the last minute.
func ShuttingDown() bool { return shutdowns.Load() > 0 }
