// Package backupbucket is the gardenlet's controller of BackupBuckets. For each BackupBucket of the seed it maintains a
// BackupBucket of extensions.gardener.cloud in the seed, with a copy of the credentials, and copies its status and the
// credentials that the extension generated back to the garden. It may import extensionops, and packages operation and
// injection (of the provider simulator).
//
// It promises that a bucket and its credentials stay while a BackupEntry uses the bucket, and that a bucket is gone
// from the garden only after the extension has released it.
package backupbucket
