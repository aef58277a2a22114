// Package provider is the provider simulator's base: controllers of extension resources of one type in a
// seed as an extension of Gardener would, with a status, finalizers and operations like those of Gardener's extension
// library. It knows the seed cluster alone, neither the garden nor gardenlets, and may import nothing of the project but
// what is below it, internal/bastionsim/cloud and internal/component. A kind of extension resource is an entry of the
// table of kinds (kinds.go) with an Actuator.
//
// How slow an operation is and whether it fails can be said per object: package injection has the annotations, which are
// public API. Delays and back-off pass on the clock of the Config, occupy no worker, and delays survive a restart.
package provider
