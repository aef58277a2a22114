// Package kit is shared by the controllers of the controller-manager: predicates, the check of a Seed's conditions, and
// deletions that must be confirmed.
//
// It may import API types and controller-runtime, and of this repository component/conditions only. It keeps no state.
package kit
