// Package v1alpha1 contains the API of stacks, stacks.crossplane.io/v1alpha1, as in Crossplane v0.4: requests to
// install a package (ClusterStackInstall, StackInstall), and the installed stack (Stack). The CRDs are in
// manifests/garden/stacks.yaml. It may import stackpackage.
package v1alpha1
