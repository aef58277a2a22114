// Package controllerinstallationrequired says in the condition Required of ControllerInstallations whether there are
// extension resources in the seed that the extension is responsible for: while there are, the controller-manager does not
// remove it. It changes nothing else. It may import API types and the package that installs.
package controllerinstallationrequired
