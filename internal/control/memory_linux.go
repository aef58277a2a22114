package control

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
)

// residentMemory returns the process's resident set size in bytes (proc(5), statm, second field, in pages).
func residentMemory(stats *runtime.MemStats) uint64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return stats.Sys
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return stats.Sys
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return stats.Sys
	}
	return pages * uint64(os.Getpagesize())
}
