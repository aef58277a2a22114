// Package installation makes a ControllerInstallation for every ControllerRegistration that a Seed needs, keeps it up to
// date, and deletes it once it is not needed: by the kinds and types of extensions that the Seed, its Shoots, its
// BackupBuckets and its BackupEntries use, by the registration's deployment policy, and by what the gardenlet reports as
// still required.
//
// There is at most one installation of a registration in a Seed: existing ones are read from the garden itself. It may
// import API types and the kit of the controller-manager.
package installation
