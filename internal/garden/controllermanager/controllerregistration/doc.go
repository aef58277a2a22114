// Package controllerregistration is the parent of the controllers for extensions: installation creates the
// ControllerInstallations of every Seed, and extensionclusterrole grants extensions permissions in the garden. The
// controllers in the package finalizers keep ControllerRegistrations and Seeds while ControllerInstallations refer to
// them.
//
// Extensions are not installed in self-hosted Shoots. The packages may import API types, finalizers and kit.
package controllerregistration
