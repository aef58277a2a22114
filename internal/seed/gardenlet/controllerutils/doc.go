// Package controllerutils has what the gardenlet's controllers have in common: their clients, the kinds of extension
// resources, and ways to write objects and kubeconfigs. Every package of the gardenlet may import it. It may import API
// types, client-go and controller-runtime.
package controllerutils
