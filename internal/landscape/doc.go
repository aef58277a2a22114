// Package landscape composes the process: Config is what a landscape is started with, Landscape starts the clusters and
// components in order and shuts everything down. What runs in seeds is package seedhost's, the state directory statedir's,
// the status, the log and the control socket control's, and the admission controller authz/server's. It may import garden,
// seed, what they import, and manifests; the command line and pkg/testenv import it.
package landscape
