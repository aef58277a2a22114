// Package seed is the gardenlet's controller of its Seed. It tells the garden of the seed's cluster (identity, versions,
// room for Shoots, until when the gardenlet's certificate is valid), sees to what users of Gardener expect in a seed, and
// keeps the BackupBucket of the Seed. It may import packages registration, conditions, probe and bootstrap (for a name) of
// the gardenlet, and operation of the seed's extensions.
//
// It promises that a Seed is let go only after the Shoots, BackupBuckets, ControllerInstallations and ManagedResources that
// need it, and that a Seed which waits for some says for which.
package seed
