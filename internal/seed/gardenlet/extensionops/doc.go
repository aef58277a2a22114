// Package extensionops has the common steps of the gardenlet's controllers for BackupBuckets, BackupEntries, Bastions and
// Shoots: copying credentials from the garden into a Secret in the seed, writing the extension resource there, reporting
// its state in the status of the object in the garden, and keeping its state in a ShootState. It may import
// controllerutils, and the packages operation and injection (of the provider simulator).
//
// It promises to write into the garden only what the SeedAuthorizer allows for the object, and to write credentials in the
// seed only if they have changed, because extensions are asked to reconcile after that.
package extensionops
