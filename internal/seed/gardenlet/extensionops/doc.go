// Package extensionops is what the gardenlet's controllers of BackupBuckets, BackupEntries, Bastions and Shoots do
// alike: credentials of the garden as a Secret in the seed, an extension resource there, and what became of it in the
// status of the object in the garden. It may import the packages operation and injection (of the provider simulator),
// and nothing else of the project.
//
// It promises to write into the garden only what the SeedAuthorizer allows for the object, and to write credentials in the
// seed only if they have changed: extensions are asked to work again after that.
package extensionops
