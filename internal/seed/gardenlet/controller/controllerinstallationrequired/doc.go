// Package controllerinstallationrequired reports in the condition Required of ControllerInstallations whether the seed
// has extension resources that the extension is responsible for. While it has, the controller-manager does not remove
// the extension. The package changes nothing else. It may import API types and the package that installs.
package controllerinstallationrequired
