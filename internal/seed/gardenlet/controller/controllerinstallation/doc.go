// Package controllerinstallation installs extensions into a seed, as its ControllerInstallations say: each gets a
// namespace, access to the garden by a ServiceAccount of its own (through the token requestor), and a ManagedResource.
//
// No workload runs in a seed of gardenlite, so no chart is rendered: a chart is looked at, and the ManagedResource has
// nothing in it. The landscape's own provider (Simulated) is served by this process. Deletion undoes everything in
// order, and whatever is cut short is gone on with. It may import API types, and the seed's packages for conditions and
// finalizers.
package controllerinstallation
