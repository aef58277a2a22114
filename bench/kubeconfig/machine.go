package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc, the same on every Linux that Go supports.
const ticksPerSecond = 100

// ownCPU is how long processors worked for this program so far.
func ownCPU() time.Duration { return cpuOf(os.Getpid()) }

// cpuOf is how long processors worked for a process so far, in itself and in the kernel; 0 where there is no /proc.
func cpuOf(pid int) time.Duration {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / ticksPerSecond
}
