package main

import (
	"syscall"
	"time"
)

// pause sleeps on a thread of its own: time.Sleep may wake up to a millisecond late, because the runtime waits for the
// network in whole milliseconds.
func pause(d time.Duration) {
	if d > 0 {
		left := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&left, nil) // woken by a signal it is early, which the next pause makes good
	}
}
