// Package controllerinstallationcare reports the state of extensions in the seed in the conditions of their
// ControllerInstallations: whether an extension is installed (its namespace, its token for the garden and its
// ManagedResource exist, and the latter is applied), healthy, and rolled out. It changes nothing else. It may import
// API types and the package that installs.
package controllerinstallationcare
