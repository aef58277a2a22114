// Package graphsync keeps the resource dependency graph (internal/authz/graph) in sync with the garden: it has one
// reflector for every kind that causes edges, whose store is the graph itself. Objects are not cached, except the few
// on which the edges of other objects depend (Seeds, ManagedSeeds, Gardenlets), so a landscape costs only the memory of
// its graph.
//
// It may import internal/authz/graph, the garden's scheme, and Kubernetes clients.
//
// It guarantees: HasSynced turns true once the first complete list of every kind is in the graph. From then on, a
// handled event is in the graph, whatever the order of events of different kinds: edges that depend on another object
// or on the time are updated when these change. There is one writer of the graph at a time.
package graphsync
