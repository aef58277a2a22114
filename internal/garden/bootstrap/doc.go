// Package bootstrap puts into a garden what Gardener's installation would: namespaces, RBAC, its identity, and the default
// landscape. It also applies a user's manifests. It may import manifests.
package bootstrap
