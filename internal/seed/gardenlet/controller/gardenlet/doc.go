// Package gardenlet is the gardenlet's controller of its own Gardenlet object: it deploys itself anew as that says, and
// gets a new identity when a user requests one. It may import packages deployment and conditions of the gardenlet, and
// operation of the extensions.
//
// It promises to look at no other Gardenlet than garden/<its seed>.
package gardenlet
