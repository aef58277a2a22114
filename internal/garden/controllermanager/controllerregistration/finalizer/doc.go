// Package finalizer keeps ControllerRegistrations, and Seeds, as long as there is a ControllerInstallation that refers to
// them, so that what is installed can be cleaned up. It may import API types and the finalizers of the controller-manager.
package finalizer
