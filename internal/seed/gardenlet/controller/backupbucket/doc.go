// Package backupbucket is the gardenlet's controller of BackupBuckets: for each of the seed's it keeps a BackupBucket of
// extensions.gardener.cloud in the seed, with a copy of the credentials, and brings its status and the credentials that the
// extension generated back to the garden. It may import its package backup, and packages operation, injection of the seed's
// extensions.
//
// It promises that a bucket and its credentials stay while a BackupEntry uses it, and that a bucket is gone from the garden
// only after the extension has released it.
package backupbucket
