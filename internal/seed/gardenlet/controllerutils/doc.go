// Package controllerutils has what the controllers of the gardenlet have in common: their clients, predicates, and the kinds
// of extension resources. It may import API types and controller-runtime.
package controllerutils
