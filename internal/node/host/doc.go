// Package host is what the programs of a node need of the machine that they run on: files, units, a name, addresses, a
// clock. A simulated machine has all of it; tests have one in memory (hosttest).
//
// It may import nothing of the project.
package host
