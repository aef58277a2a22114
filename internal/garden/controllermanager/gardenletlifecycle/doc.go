// Package gardenletlifecycle checks whether gardenlets are alive, by the leases they renew. When a gardenlet has not
// renewed its lease for the monitor period, its Seed's condition GardenletReady becomes Unknown; when that has lasted
// for the shoot monitor period, the conditions and constraints of that Seed's Shoots become Unknown, too. The
// gardenlet updates them itself as soon as it is back. A ManagedSeed's gardenlet whose certificate has expired
// meanwhile is bootstrapped again.
//
// Leases are read from the garden itself. It may import API types, component/conditions and the kit beside it.
package gardenletlifecycle
