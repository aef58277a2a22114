// Package controllerregistration has below it the controllers that make extensions run where they are needed:
// installation decides for every Seed which ControllerRegistrations are installed there, and extensionclusterrole gives
// extensions rights of their own in the garden. That ControllerRegistrations and Seeds stay as long as something is
// installed, is up to the finalizers of the controller-manager.
//
// Self-hosted Shoots are no targets of installations. The packages may import API types, and the finalizers and the kit of
// the controller-manager.
package controllerregistration
