// Package shootstate is the gardenlet's controller that backs up in the garden what a Shoot cannot be recreated without:
// its secrets and the states of its extension resources. It writes them into the ShootState periodically, in case the seed
// is lost. It may import what controllers of the gardenlet have in common.
//
// It promises to skip a Shoot that is being created, deleted or migrated to another seed: there the flow writes the
// ShootState when it is complete. As in Gardener, nothing is written for Shoots on a seed that is a Shoot itself (a
// ManagedSeed), because the garden's operator has a backup of such a seed.
package shootstate
