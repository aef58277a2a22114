// Package machines is the machine controller of a seed: it does what Gardener's machine-controller-manager does, with
// instances of the simulated cloud. From MachineDeployments it makes MachineSets and Machines, from Machines instances;
// it waits until their Nodes have joined the shoot, gives these the labels, annotations and taints of their pool, rolls,
// drains and deletes machines, and replaces what is not healthy. It knows the seed and the shoots whose Secret
// machine-controller-manager it can read, and may import of the project what is below it, internal/bastionsim/cloud and
// internal/component, operation and cluster.
//
// It promises that it can be killed at any moment and continues from what is written in the seed and in the cloud: no
// instance is made twice, and none is forgotten. Nothing is done in a namespace whose Worker migrates (see Guard). Of a
// shoot it keeps a client whose idle connections are closed, and one watch of its Nodes while a machine is about to
// join; neither outlives the Machines of the namespace. A Node goes with its machine; where the API server does not
// answer, it is waited for, unless the shoot hibernates or goes. Nodes whose instances have gone otherwise are removed
// as a cloud's node controller does it, once for each time that this controller meets a shoot.
package machines
