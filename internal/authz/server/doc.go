// Package server is the admission controller: the graph with what feeds it, the authorizer, the restriction, and the HTTPS
// server of both webhooks, and the files with which a kube-apiserver uses them.
//
// A landscape runs a Controller beside its garden, in the same process; Alone runs one for a garden elsewhere. Both reach
// the garden only through the client configuration that they are given. The package may import the other packages of authz,
// internal/controlplane/pki, internal/fsutil and internal/usage.
package server
