// Package component creates the controller-runtime managers of the components that run in this process, their controllers, and
// the predicates of watches. It imports nothing of the project.
//
// It guarantees that several managers can run in one process, that none of them listens on a port, and that Run leaves
// no goroutine and no connection behind when it returns.
package component
