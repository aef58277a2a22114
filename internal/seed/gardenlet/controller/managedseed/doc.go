// Package managedseed is the gardenlet's controller of ManagedSeeds. For each ManagedSeed of a Shoot on its seed it
// deploys another gardenlet into the Shoot's cluster, which registers the cluster as a Seed. When the ManagedSeed is
// deleted, it undoes all of that, the Seed first. It may import packages deployment and conditions of the gardenlet,
// and operation of the extensions.
//
// It promises that a ManagedSeed is gone from the garden only after its Seed, its gardenlet and the gardenlet's
// bootstrap credentials.
package managedseed
