package quirks

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// aftermath is how long after its end the work that a server has started may still fail. Some of it retries for thirty
// seconds.
const aftermath = time.Minute

// shutdowns is the number of servers and landscapes that are being stopped, or were stopped less than aftermath ago.
var shutdowns atomic.Int64

// BeginShutdown records that servers, or their dependencies, are about to be stopped. The caller calls EndShutdown once
// they have been.
func BeginShutdown() { shutdowns.Add(1) }

// EndShutdown records the end of a shutdown. The shutdown counts for another minute.
func EndShutdown() { time.AfterFunc(aftermath, func() { shutdowns.Add(-1) }) }

// UnlessShutdown wraps exit, for klog.OsExit: it does not exit during a shutdown and the minute after it. The start
// hooks of an API server fail if the server is stopped meanwhile, and Kubernetes' code then ends the process, in which
// other control planes may run.
//
// Upstream: runPostStartHook in
// https://github.com/kubernetes/kubernetes/blob/v1.36.4/staging/src/k8s.io/apiserver/pkg/server/hooks.go
func UnlessShutdown(exit func(status int)) func(status int) {
	return func(status int) {
		if !ShuttingDown() {
			exit(status)
		}
	}
}

// OutliveShutdowns sets klog.OsExit, for processes that have not replaced it themselves.
var OutliveShutdowns = sync.OnceFunc(func() { klog.OsExit = UnlessShutdown(klog.OsExit) })

// ShuttingDown reports whether there is a shutdown, or was one in the last minute.
func ShuttingDown() bool { return shutdowns.Load() > 0 }
