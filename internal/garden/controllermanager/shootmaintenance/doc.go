// Package shootmaintenance maintains Shoots, in the time window of each and when they are asked to be maintained: it
// brings Kubernetes and machine images to the versions that they are to have, starts the credential rotations that are
// due, and has the gardenlet roll out what waited for the window.
//
// The parts of a maintenance are a file each: kubernetes.go and images.go choose versions (by the rules in versions.go),
// removals.go takes from the specification what a newer Kubernetes does not have, binding.go replaces SecretBindings,
// rotations.go and operations.go are about annotations. What is done, and what could not be, is in status.lastMaintenance.
//
// It may import API types, the kit beside it, the component package, and what admission and validation know of cloud
// profiles and versions. It changes nothing that the garden would refuse: that is tried before anything is written.
package shootmaintenance
