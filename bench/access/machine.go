package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc, the same on every Linux that Go supports.
const ticksPerSecond = 100

// cpuTimes are how long the machine's CPUs were busy, all together, and how long they were busy for this program.
// They are zero on systems without /proc.
type cpuTimes struct{ all, own time.Duration }

func readCPU() cpuTimes {
	return cpuTimes{
		// user, nice, system, then idle and waiting, which are left out, then interrupts and what a hypervisor took away.
		all: ticks("/proc/stat", "cpu ", 0, 1, 2, 5, 6, 7),
		own: ticks("/proc/self/stat", ") ", 11, 12), // utime and stime, counted from after the name
	}
}

func (c cpuTimes) minus(before cpuTimes) cpuTimes {
	return cpuTimes{c.all - before.all, c.own - before.own}
}

func ticks(file, after string, columns ...int) time.Duration {
	data, _ := os.ReadFile(file) // there is none on other systems
	_, rest, _ := strings.Cut(string(data), after)
	fields := strings.Fields(rest)
	sum := 0
	for _, column := range columns {
		if column < len(fields) {
			n, _ := strconv.Atoi(fields[column])
			sum += n
		}
	}
	return time.Duration(sum) * time.Second / ticksPerSecond
}
