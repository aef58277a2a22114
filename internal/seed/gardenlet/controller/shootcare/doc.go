// Package shootcare is the gardenlet's controller that says how its Shoots are: in their conditions, and in the constraints
// that tell what cannot be done with them now. What it says is what it has found: it asks the Shoot's API server whether it
// is ready, and reads Deployments, extension resources and ManagedResources in the seed, and Nodes, Leases, webhooks and
// custom resources in the Shoot. It may import what controllers of the gardenlet have in common.
//
// It promises that a Shoot that hibernates costs nothing but a write when that begins: neither is its API server asked, nor
// does time wake the controller for it. A condition that was True is Progressing before it is False.
//
// Of Gardener's checks those are missing whose subject is: the tunnel to the nodes, the Lease of gardener-node-agent, the
// monitoring and logging stacks, etcd resources, preserved machines, the dependency-watchdog.
package shootcare
