// Package machines is the machine controller of a seed: it does what Gardener's machine-controller-manager does, with
// instances of the simulated cloud. It creates MachineSets and Machines for MachineDeployments, and instances for Machines;
// it waits until their Nodes have joined the shoot, sets the labels, annotations and taints of their pool on the Nodes,
// rolls, drains and deletes machines, and replaces unhealthy ones. It knows the seed and the shoots whose Secret
// machine-controller-manager it can read, and may import of the project the packages below it, internal/bastionsim/cloud,
// internal/node (for the placeholders in user data) and internal/component, operation and cluster.
//
// It promises that it can be killed at any moment and continues from the state in the seed and in the cloud: no instance is
// created twice, and none is forgotten. It does nothing in a namespace whose Worker is being migrated (see Guard). For each
// shoot it has a client, which closes idle connections, and one watch of the Nodes while a machine is about to join; both
// end with the last Machine of the namespace. A Node is deleted with its machine; if the API server does not respond, the
// controller waits for it, unless the shoot is hibernated or being deleted. Nodes whose instances have disappeared otherwise
// are deleted, as a cloud's node controller does it, once for each time that this controller connects to a shoot.
package machines
