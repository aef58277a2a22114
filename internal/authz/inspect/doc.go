// Package inspect explains scoped access: whether a request of a gardenlet or an extension is allowed and why
// (explain.go), and everything that it may do (matrix.go). It decides with the webhook's authorizer, and compares the
// result with that of the garden's API server, which asks RBAC first.
//
// Handler serves this, and the graph in the formats of graphview, over HTTP; Client is its counterpart. The package may
// import the other packages of authz.
package inspect
