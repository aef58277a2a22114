// Package registration is how a gardenlet makes itself known: it creates or updates its Seed in the garden, as its
// configuration describes it. It may import API types and controller-runtime.
//
// It promises that a registration that has been made writes nothing the next time, and that no request is refused because
// the garden has not yet heard that the Seed is there: it asks beforehand whether it may.
package registration
