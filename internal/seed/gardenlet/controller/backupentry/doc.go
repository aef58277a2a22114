// Package backupentry is the gardenlet's controller of BackupEntries: for each that the seed is responsible for it keeps a
// BackupEntry of extensions.gardener.cloud in the seed, with a copy of the bucket's credentials, and brings its status back
// to the garden. An entry that is to move to another seed is released here, and restored there. It may import
// extensionops, the predicates of the controller of BackupBuckets, and packages operation and injection (of the provider
// simulator).
//
// It promises that an entry is given to another seed, or is gone from the garden, only after the extension here has let go
// of it.
package backupentry
