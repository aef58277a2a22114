// Package landscape composes the process: it owns the state directory and its lock, starts the clusters in order,
// answers status and stop on a control socket, and shuts everything down. It may import garden (and seed), what they
// import, and manifests; the command line and pkg/testenv import it.
package landscape
