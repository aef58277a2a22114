// Package v1alpha1 has the API of stacks, stacks.crossplane.io/v1alpha1, as Crossplane v0.4 has it: requests to install a
// package (ClusterStackInstall, StackInstall), and what is installed (Stack). Their definitions are in
// manifests/garden/stacks.yaml. It may import stackpackage.
package v1alpha1
