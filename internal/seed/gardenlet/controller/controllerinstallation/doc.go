// Package controllerinstallation installs extensions into a seed, as its ControllerInstallations say: each gets a
// namespace, access to the garden by a ServiceAccount of its own (through the token requestor), and a ManagedResource
// with the objects of its chart.
//
// The landscape's own provider (Simulated) has no chart: this process serves it. Deletion undoes everything in order,
// and continues after an interruption. It may import API types, the package that renders charts, and the seed's
// packages for conditions and finalizers.
package controllerinstallation
