// Package backupentry is the gardenlet's controller of BackupEntries: for each that the seed is responsible for it keeps a
// BackupEntry of extensions.gardener.cloud in the seed, with a copy of the bucket's credentials, and brings its status back
// to the garden. An entry that is to move to another seed is released here, and restored there. It may import package
// backup of the controller of BackupBuckets (and its predicates), and packages operation, injection of the seed's extensions.
//
// It promises that an entry is given to another seed, or is gone from the garden, only after the extension here has let go
// of it.
package backupentry
