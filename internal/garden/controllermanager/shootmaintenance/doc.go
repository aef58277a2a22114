// Package shootmaintenance maintains Shoots, in the time window of each and on request: it updates Kubernetes and
// machine images, starts the credential rotations that are due, and lets the gardenlet roll out the changes that were
// put off until the window.
//
// Each part of a maintenance has a file: versions.go and images.go choose versions of Kubernetes and images,
// removals.go removes fields from the specification that a newer Kubernetes version does not have, binding.go replaces
// SecretBindings, operations.go sets annotations. The field status.lastMaintenance contains what was done, and what
// failed.
//
// It may import API types, the kit beside it, the component package, and the parts of admission and validation about
// cloud profiles and versions. It changes nothing that the garden would refuse: a dry run precedes the changes.
package shootmaintenance
