// Package graphsync keeps the resource dependency graph (internal/authz/graph) equal to what the garden holds: one reflector
// for every kind that causes edges, whose store is the graph itself. Objects are not cached, except the few that other
// objects' edges depend on (Seeds, ManagedSeeds, Gardenlets), so a landscape costs the memory of its graph.
//
// It may import internal/authz/graph, the garden's scheme, and Kubernetes clients.
//
// It promises: HasSynced turns true when the first complete list of every kind is in the graph, and not before. From
// then on an event is in the graph when it has been handled, whatever the order of events between kinds: where the edges
// of one object depend on another object or on the time, they are made anew when that changes. There is one writer of the
// graph at a time.
package graphsync
