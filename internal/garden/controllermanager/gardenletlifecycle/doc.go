// Package gardenletlifecycle looks whether gardenlets are alive, by the leases they renew. When one has not been for the monitor
// period, its Seed's condition GardenletReady is Unknown; when that has lasted for the shoot monitor period, nobody can
// know how the Shoots of that Seed are, and their conditions and constraints are Unknown, too. The gardenlet says
// otherwise itself as soon as it is back. A gardenlet that lost its certificate meanwhile, and that a ManagedSeed made, is
// bootstrapped again.
//
// Leases are read from the garden itself. It may import API types, component/conditions and the kit beside it.
package gardenletlifecycle
