// Package cloudprofile answers what a Shoot's CloudProfile or NamespacedCloudProfile offers, and picks from it what the
// user left open: Kubernetes versions, machine images, architectures. All questions about a version's life are asked for
// a point in time.
//
// It may import the plugin package, shootcommon and the validation helpers. It changes nothing that it is given.
package cloudprofile
