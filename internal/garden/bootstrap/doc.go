// Package bootstrap puts into a garden what Gardener's installation would: namespaces, RBAC, its identity, and the default
// landscape. It also applies a user's manifests. It may import manifests.
//
// bootstrap.go says what a garden gets; ensure.go writes what is the program's own, each object once and only if it
// differs; apply.go applies manifests with server-side apply, in whatever order they can be applied; objects.go reads them.
package bootstrap
