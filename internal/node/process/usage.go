package process

import "time"

// Usage is what processes use.
type Usage struct {
	// Memory is resident, in bytes.
	Memory int64
	// CPU is what they have used since they were started.
	CPU time.Duration
}

// processInfo is what this machine knows of a process.
type processInfo struct {
	pid, group int
	started    string
	memory     int64
	cpu        time.Duration
}
