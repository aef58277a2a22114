// Package kit is shared by the controllers of the controller-manager: what a Reconciler gets from its manager, a predicate and
// requests of watches, the check of a Seed's conditions, and deletions that must be confirmed.
//
// It may import API types and controller-runtime, and of this repository component only. It keeps no state.
package kit
