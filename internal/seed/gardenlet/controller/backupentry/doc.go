// Package backupentry is the gardenlet's controller of BackupEntries. For each BackupEntry that the seed is responsible
// for it maintains a BackupEntry of extensions.gardener.cloud in the seed, with a copy of the bucket's credentials, and
// copies its status back to the garden. When an entry moves to another seed, the old seed releases it, and the new seed
// restores it. It may import extensionops, the predicates of the controller of BackupBuckets, and packages operation
// and injection (of the provider simulator).
//
// It promises that an entry is given to another seed, or is gone from the garden, only after the extension in this seed
// has released it.
package backupentry
