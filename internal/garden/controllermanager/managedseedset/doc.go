// Package managedseedset keeps as many ManagedSeeds as a ManagedSeedSet wants, each with a Shoot of its own, both made
// from the set's templates: it adds and removes them one after the other, waits until each is ready or gone, and tries
// failed Shoots again a few times.
//
// What has Shoots scheduled to it, or is protected by annotation, is never removed. What is written down in the status
// is only what cannot be seen otherwise (how often something was tried), so that every step can be repeated after a
// crash. It may import API types and the neighbours below the controller-manager.
package managedseedset
