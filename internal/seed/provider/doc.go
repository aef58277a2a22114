// Package provider is the provider simulator: it runs controllers for the extension resources of one type in a seed, as an
// extension of Gardener would, with a status, finalizers and operations like those of Gardener's extension library. It
// knows only the seed cluster, neither the garden nor gardenlets, and may import nothing of the project but the packages
// below it, internal/bastionsim/cloud and internal/component. Each kind of extension resource is an entry of the table of
// kinds (kinds.go) with an Actuator.
//
// Operations can be delayed or made to fail per object: package injection has the annotations, which are public API. Delays
// and backoff use the clock of the Config and occupy no worker, and delays survive a restart.
package provider
