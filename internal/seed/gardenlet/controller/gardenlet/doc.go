// Package gardenlet is the gardenlet's controller of its own Gardenlet object: it deploys itself as the object says,
// and renews its identity when a user requests that. It may import packages deployment and conditions of the gardenlet,
// and operation of the extensions.
//
// It promises to handle no other Gardenlet than garden/<its seed>.
package gardenlet
