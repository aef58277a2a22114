// Package seedlease is the gardenlet's heartbeat: while the seed's API server is healthy, it renews the Lease
// gardener-system-seed-lease/<seed> in the garden, and sets the Seed's condition GardenletReady to True. It may import
// packages conditions and probe of the gardenlet, and operation of the seed's extensions.
//
// It promises that the Lease is not renewed while the seed cannot be reached. The controller-manager then sets the
// condition to Unknown.
package seedlease
