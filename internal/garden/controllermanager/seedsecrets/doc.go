// Package seedsecrets creates for each Seed the namespace in the garden in which its gardenlet and its extensions work,
// and copies into it the secrets that the landscape's operator keeps in the namespace garden for all Seeds (by their
// role: domains, certificates, monitoring and others). A copy is deleted with its original.
//
// The namespace is owned by the Seed, and Kubernetes' garbage collection deletes it after the Seed. Secrets are read
// from the API server; only their metadata is watched. It may import API types and the kit beside it.
package seedsecrets
