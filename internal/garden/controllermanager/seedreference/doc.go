// Package seedreference keeps what Seeds refer to in the namespace garden: a Secret, a ConfigMap or a WorkloadIdentity that
// is among a Seed's resources cannot go as long as that Seed is there, by a finalizer on it and one on the Seed.
//
// It reads the metadata of such things only, from the garden itself. What a Shoot or a ControllerDeployment names that
// keeps things by the same finalizer is never released here. It may import API types and the finalizers and the kit beside
// it.
package seedreference
