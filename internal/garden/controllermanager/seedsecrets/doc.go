// Package seedsecrets makes for each Seed the namespace in the garden that its gardenlet and its extensions work in, and copies
// the secrets into it that the landscape's operator keeps in the namespace garden for all Seeds (by their role: domains,
// certificates, monitoring and others). A copy goes with its original.
//
// The namespace belongs to the Seed, and is deleted after it by Kubernetes' garbage collection. Secrets are read from the
// garden itself; only their metadata is watched. It may import API types and the kit beside it.
package seedsecrets
