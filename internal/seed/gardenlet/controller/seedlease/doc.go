// Package seedlease is the gardenlet's sign of life: while the seed's API server lives, it renews the Lease
// gardener-system-seed-lease/<seed> in the garden, and says in the Seed's condition GardenletReady that it is there. It may
// import packages conditions, probe of the gardenlet and operation of the seed's extensions.
//
// It promises that the Lease is not renewed while the seed cannot be reached. The controller-manager makes the condition
// Unknown then.
package seedlease
