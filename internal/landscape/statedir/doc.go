// Package statedir is the state directory of a landscape, or of a gardenlet or an admission controller that runs alone:
// where it is, the names in it, its lock, what run.json says of the process that holds it, the ports that are taken again,
// and the room on its disk. It may import internal/fsutil only.
package statedir
