package quirks

import (
	"context"
	"runtime"
	"runtime/pprof"
	"sync"
	"unsafe"
)

// Kubernetes' servers and controllers log through the one logger of their process, klog's, mostly without a context
// that could say whose line it is. Here several of them are in one process. Goroutines inherit the profiler labels of
// the goroutine that starts them, so labels tell the origin of a line. runtime/pprof does not read a goroutine's
// labels back; the two functions below are among those that Go keeps for packages that need them
// (https://go.dev/issue/67401). What the pointer points at is not read.

//go:linkname labelsOfGoroutine runtime/pprof.runtime_getProfLabel
func labelsOfGoroutine() unsafe.Pointer

//go:linkname setLabelsOfGoroutine runtime/pprof.runtime_setProfLabel
func setLabelsOfGoroutine(unsafe.Pointer)

// LogOrigin is what logs a line: a component, and the cluster that it is part of or works for.
type LogOrigin struct{ Component, Cluster string }

// origins has a *LogOrigin by the address of the labels of its goroutines, for as long as there are such goroutines.
var origins sync.Map

// EnterLogOrigin makes this goroutine, until leave is called, and those that it starts meanwhile log as of an origin.
func EnterLogOrigin(origin LogOrigin) (leave func()) {
	before := labelsOfGoroutine()
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(),
		pprof.Labels("component", origin.Component, "cluster", origin.Cluster)))
	labels := labelsOfGoroutine()
	entry := &origin
	origins.Store(uintptr(labels), entry)
	// The address may have been taken again by the time that the cleanup runs.
	runtime.AddCleanup((*byte)(labels), func(address uintptr) { origins.CompareAndDelete(address, entry) },
		uintptr(labels))
	return func() { setLabelsOfGoroutine(before) }
}

// LogOriginOfGoroutine returns the origin of what this goroutine logs, which is empty if it is not known.
func LogOriginOfGoroutine() LogOrigin {
	if labels := labelsOfGoroutine(); labels != nil {
		if origin, known := origins.Load(uintptr(labels)); known {
			return *origin.(*LogOrigin)
		}
	}
	return LogOrigin{}
}
