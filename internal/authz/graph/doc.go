// Package graph implements the resource dependency graph of the SeedAuthorizer: which objects belong to which Seed,
// directly or through other objects ("Scoped API access for gardenlets and extensions").
//
// An edge points toward the seed and belongs to the object that causes it. Set replaces all edges of an object at once,
// and a vertex lives while its object exists or an edge refers to it, so the graph is a function of the existing
// objects, whatever the order of events.
//
// kinds.go and edges*.go are the tables: the kinds of objects and the edges of each. graph.go has vertices, edges, the
// graph, and the index for path checks; view.go has explanations and snapshots.
//
// The package imports the standard library, API types and machinery, k8s.io/utils and bootstraprules, and no client.
package graph
