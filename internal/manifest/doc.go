// Package manifest reads manifests and has a cluster have what is in them. It imports nothing of the project.
//
// objects.go reads them; ensure.go writes what is the program's own, each object once and only if it differs; apply.go
// applies a user's with server-side apply, in whatever order they can be applied.
package manifest
