// Package managedseedset maintains the replicas of ManagedSeedSets: ManagedSeeds with a Shoot each, both created from
// the set's templates. It adds and removes replicas one after the other, waits until each is ready or deleted, and
// retries failed operations of Shoots a few times.
//
// A replica that has Shoots scheduled to it, or is protected by annotation, is never removed. The status is read only
// for what cannot be derived from other objects (the number of retries), so that every step can be repeated after a
// crash. The package may import API types and the other packages of the controller-manager.
package managedseedset
