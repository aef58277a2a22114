// Package defaultobjects puts into a garden what Gardener's installation would: namespaces, RBAC, its identity, and the
// default landscape. It may import internal/manifest and manifests.
package defaultobjects
