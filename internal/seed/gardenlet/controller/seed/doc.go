// Package seed is the gardenlet's controller for its Seed. It reports the state of the seed's cluster to the garden
// (identity, Kubernetes version, capacity for Shoots, expiration of the gardenlet's client certificate), ensures the
// namespaces and labels that users of Gardener expect in a seed, and maintains the BackupBucket of the Seed. It may import
// packages registration, conditions, probe and bootstrap (for a name) of the gardenlet, and operation of the seed's
// extensions.
//
// It promises that the finalizer of a Seed is removed only after the Shoots, BackupBuckets, ControllerInstallations and
// ManagedResources that need the Seed are gone, and that the status of a waiting Seed names these objects.
package seed
