// Package stackmanager is the Stack Manager: it installs, upgrades and uninstalls the packages that ClusterStackInstalls
// and StackInstalls name, with the permissions that follow from their CRDs (Stacks security and isolation).
//
// Everything that is installed follows from the package, read anew after a restart, and from the CRDs in the garden; what
// is in a Stack only records it. It may import component, stackpackage and v1alpha1.
package stackmanager
