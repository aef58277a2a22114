// Package vfs is the file system of a simulated machine, all of it in memory: directories, regular files, symbolic links
// and the few character devices that scripts use, with owners, modes and modification times.
//
// It promises that nothing of the host can be reached through it (it imports nothing that could), that paths are resolved
// component by component from its own root (".." of the root is the root), and that its size stays within Limits whatever
// is written. It may be used concurrently. It imports the standard library only.
package vfs
