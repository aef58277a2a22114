// Package kit is what several controllers of the controller-manager have in common: which changes they look at, what
// a working Seed is, and deletions that have to be confirmed.
//
// It may import API types and controller-runtime, and of this repository component/conditions only. It keeps no state.
package kit
