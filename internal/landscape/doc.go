// Package landscape composes the process: Landscape starts the clusters and components in order and shuts everything
// down, and Config configures it. Package seedhost runs what is in seeds, statedir manages the state directory,
// control has the status, the log and the control socket, and authz/server is the admission controller. This package
// may import garden, seed, what they import, and manifests; the command line and pkg/testenv import it.
package landscape
