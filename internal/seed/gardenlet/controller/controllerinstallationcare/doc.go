// Package controllerinstallationcare says in the conditions of ControllerInstallations what has become of them in the seed:
// whether the extension is installed (its namespace, its token for the garden and its ManagedResource are there, the last
// applied), healthy, and rolled out. It changes nothing else. It may import API types and the package that installs.
package controllerinstallationcare
