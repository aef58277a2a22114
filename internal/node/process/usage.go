package process

// processInfo is what this machine knows of a process.
type processInfo struct {
	pid, group int
	started    string
	ended      bool  // but its parent does not know yet
	memory     int64 // resident, in bytes
}
