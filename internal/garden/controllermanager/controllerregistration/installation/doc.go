// Package installation creates a ControllerInstallation for every ControllerRegistration that a Seed needs, keeps it up
// to date, and deletes it when it is not needed any more. What is needed depends on the kinds and types of extensions
// that the Seed, its Shoots, its BackupBuckets and its BackupEntries use, on the registration's deployment policy, and
// on the condition Required that the gardenlet reports.
//
// Extensions are not installed in self-hosted Shoots. A registration has at most one installation in a Seed: existing
// ones are read from the API server, without the cache. The package may import API types and kit.
package installation
