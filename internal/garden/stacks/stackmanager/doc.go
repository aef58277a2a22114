// Package stackmanager contains the Stack Manager. It installs, upgrades and uninstalls the packages of
// ClusterStackInstalls and StackInstalls, and gives their controllers the permissions that derive from their CRDs
// (Stacks security and isolation).
//
// All objects derive from the package, which is read anew after a restart, and from the CRDs in the garden. A Stack
// records what is installed and claims its CRDs. The package may import component, stackpackage and v1alpha1.
package stackmanager
