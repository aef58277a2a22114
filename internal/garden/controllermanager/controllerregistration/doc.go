// Package controllerregistration has below it the controllers that make extensions run where they are needed:
// installation decides for every Seed which ControllerRegistrations are installed there, finalizer keeps
// ControllerRegistrations and Seeds as long as something is installed, and extensionclusterrole gives extensions rights of
// their own in the garden.
//
// Self-hosted Shoots are no targets of installations. The packages may import API types, and the finalizers and the kit of
// the controller-manager.
package controllerregistration
