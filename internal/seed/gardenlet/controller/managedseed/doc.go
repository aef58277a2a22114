// Package managedseed is the gardenlet's controller of ManagedSeeds: for each of a Shoot on its seed it deploys a further
// gardenlet into the Shoot's cluster, which registers that as a Seed, and when the ManagedSeed is deleted takes all of that
// back, the Seed first. It may import packages deployment and conditions of the gardenlet, and operation of the extensions.
//
// It promises that a ManagedSeed is gone from the garden only after its Seed, its gardenlet and what that could have
// bootstrapped with.
package managedseed
