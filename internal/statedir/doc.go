// Package statedir manages the state directory of a landscape, or of a gardenlet or an admission controller that
// runs alone: its place, the names of its files, its lock, run.json with the process that holds it, the ports to use
// again, and the free space of its disk. It may import internal/fsutil only.
package statedir
