// Package gardenletlifecycle checks by their leases whether gardenlets are alive. If a gardenlet has not renewed its
// lease within the monitor period, the condition GardenletReady of its Seed becomes Unknown; if this has lasted for the
// shoot monitor period, the conditions and constraints of that Seed's Shoots become Unknown, too. The gardenlet itself
// updates them as soon as it is back. If the certificate of a ManagedSeed's gardenlet has expired in the meantime, the
// gardenlet is bootstrapped again.
//
// Leases are read from the API server of the garden, without a cache. The package may import API types,
// component/conditions and kit.
package gardenletlifecycle
