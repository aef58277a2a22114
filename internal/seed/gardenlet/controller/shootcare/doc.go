// Package shootcare is the gardenlet's controller that checks the health of Shoots. It reports the result in their
// conditions, and in the constraints, which say what cannot be done with a Shoot now. It asks the Shoot's API server
// whether it is ready, and reads Deployments, extension resources and ManagedResources in the seed, and Nodes, Leases,
// webhooks and custom resources in the Shoot. It may import what controllers of the gardenlet have in common.
//
// It promises that a hibernated Shoot costs only one write when its hibernation begins: its API server gets no
// requests, and the controller does not requeue the Shoot. A condition that was True is Progressing before it becomes
// False.
//
// Gardener's checks of components that do not exist here are missing: the tunnel to the nodes, the Lease of
// gardener-node-agent, the monitoring and logging stacks, etcd resources, preserved machines, the dependency-watchdog.
package shootcare
