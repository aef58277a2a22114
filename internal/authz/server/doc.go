// Package server implements the admission controller: the graph and its syncer, the authorizer, the restriction, the
// HTTPS server of both webhooks, and the files with which a kube-apiserver uses them.
//
// A landscape runs a Controller beside its garden, in the same process; Standalone runs one for a garden elsewhere. Both
// access the garden only through the given client configuration. The package may import the other packages of authz,
// internal/controlplane/pki, internal/fsutil and internal/usage.
package server
