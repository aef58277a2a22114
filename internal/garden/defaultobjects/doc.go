// Package defaultobjects creates the objects in a garden that Gardener's installation would create: namespaces, RBAC,
// its identity, and the default landscape. It may import internal/manifest and manifests.
package defaultobjects
