//go:build !linux

package control

import "runtime"

// residentMemory returns an upper bound of the resident memory in bytes: what Go took and did not give back.
func residentMemory(stats *runtime.MemStats) uint64 { return stats.Sys - stats.HeapReleased }
