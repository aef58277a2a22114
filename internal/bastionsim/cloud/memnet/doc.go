// Package memnet is a network in memory: connections and listeners that cannot be reached from outside of the process.
// It imports nothing of the project.
//
// It promises what a TCP connection of the host does: a buffer in each direction, so that two sides that both write do
// not wait for each other; deadlines; what was written before a Close arrives; closing one direction alone. Deadlines
// go by the real clock, as those of sockets do, because callers compute them from it.
package memnet
