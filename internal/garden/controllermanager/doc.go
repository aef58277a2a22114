// Package controllermanager is Gardener's controller-manager: the controllers that look after the garden's own resources,
// as one component with its own identity.
//
// Each controller has a folder, with a Reconciler that can be tried with a client and a clock, and an AddToManager; the
// table in manager.go puts them together. It may import the other packages below garden, and reaches the garden through
// the client configuration that it is given only. It promises that Run, when it returns, has left no goroutine behind,
// and that several managers can run in one process.
package controllermanager
