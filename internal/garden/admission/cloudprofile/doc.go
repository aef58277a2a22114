// Package cloudprofile reads what a Shoot's CloudProfile or NamespacedCloudProfile offers, and completes what the user
// left open: Kubernetes versions, machine images, architectures. Functions that depend on the lifecycle of a version
// take the current time as an argument.
//
// It may import the plugin package, shootcommon and the validation helpers. It does not change its arguments.
package cloudprofile
