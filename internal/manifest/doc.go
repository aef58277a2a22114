// Package manifest reads manifests and writes their objects to a cluster. It imports nothing of the project.
//
// objects.go reads manifests; ensure.go writes the program's own, each object once and only if it differs; apply.go
// applies a user's with server-side apply, in an order in which they can be applied.
package manifest
