// Package shootstate is the gardenlet's controller that keeps in the garden what a Shoot cannot be made again from without:
// its secrets, and the states of its extension resources. It writes them into the ShootState, again and again, so that there
// is one if the seed is lost. It may import what controllers of the gardenlet have in common.
//
// It promises to leave a Shoot alone that is being made, deleted or moved to another seed: there the flow writes the
// ShootState when it is complete. As in Gardener, nothing is written on a seed that is a Shoot itself (a ManagedSeed), where
// the garden's operator has a backup of the seed's own.
package shootstate
