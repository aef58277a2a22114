// Package kit is what several controllers of the controller-manager have in common: which changes they look at,
// conditions, and deletions that have to be confirmed.
//
// It may import API types and controller-runtime, and nothing of this repository. It keeps no state.
package kit
