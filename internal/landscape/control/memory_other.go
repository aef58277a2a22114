//go:build !linux

package control

import "runtime"

// residentMemory is an upper bound where the system does not tell cheaply: what Go took and did not give back.
func residentMemory(stats *runtime.MemStats) uint64 { return stats.Sys - stats.HeapReleased }
