// Package component makes the controller-runtime managers of the components that run in this process. It imports nothing
// of the project.
//
// It promises that several of them can run in one process, that none of them listens on a port, and that Run, when it
// returns, has left no goroutine and no connection behind.
package component
