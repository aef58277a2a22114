// Package registration registers the gardenlet's Seed: it creates or updates the Seed in the garden according to the
// gardenlet's configuration. It may import API types and controller-runtime.
//
// It promises that a repeated registration writes nothing, and that no request is denied because the garden does not know
// the Seed yet: it checks its access beforehand.
package registration
