// Package graph is the resource dependency graph that the SeedAuthorizer asks: which objects belong, directly or through
// other objects, to which Seed (docs: scoped access, "The graph").
//
// An edge points toward the seed and belongs to the object that causes it (Set). The edges an object owns are replaced as
// a whole, and a vertex lives while its object exists or an edge refers to it, so the graph is a pure function of the
// objects that are there, whatever the order in which they were told.
//
// The jobs and their files: what a vertex is (vertex.go), which edges an object causes (edges*.go), the graph itself
// (graph.go, link.go), who reaches which seed (reach.go, seedset.go, closure.go), the lock-free index from a vertex to
// its node (index.go), the answers for readers (query.go), explanations (path.go, snapshot.go), and what people choose to see
// (filter.go).
//
// It may import the standard library, API types and bootstrapping, and no client. It promises that HasPath and Has take no
// lock, do not allocate, and take the same time however large the graph is; that an update costs what changes and not what
// is there; and that cycles neither loop nor keep a path alive that is gone.
package graph
