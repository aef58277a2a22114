// Package corevalidation validates the objects of the API group core.gardener.cloud in their internal version.
//
// There is one file per resource (shoots have several, the two kinds of backups share one), with the functions that the
// resource's registry strategy calls: ValidateX for a new object, ValidateXUpdate for a changed one, and
// ValidateXStatusUpdate for its status subresource. Code that several resources share is in common.go, cidr.go (network
// ranges), versions.go (expirable versions and lifecycles), machines.go (machine images, machine types, volume types)
// and features.go (feature gates).
//
// The functions are pure: they read only their arguments, the feature gates and, where a version's lifecycle matters,
// the clock. They never change an object, and return a list of field errors for any input; they never panic. Error
// types and field paths are the same as in Gardener's own API server, so that a client sees no difference. Rules that
// need other objects (a cloud profile, a seed) are checked by the admission plugins.
//
// The package may import the Gardener API types and Kubernetes' API machinery, nothing else of this module.
package corevalidation
