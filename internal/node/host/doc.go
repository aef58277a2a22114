// Package host is the interface of a node's programs to the machine on which they run: files, units, a name, addresses,
// a clock. Simulated machines provide it; tests use one in memory (hosttest).
//
// It may import nothing of the project.
package host
