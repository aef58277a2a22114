// Package authorizer decides what a gardenlet, or an extension on a seed, may do in the garden (SeedAuthorizer).
//
// The rules are one table, in table.go, in the order of Gardener's "Scoped API Access for gardenlets and Extensions",
// section "Implemented Rules". rule.go defines its columns, authorizer.go applies it, explain.go explains decisions. It
// guarantees that
//
//   - the decision is allow or no opinion, never deny, and no opinion for unknown users and resources;
//   - a request is allowed because of one row, which the reason contains;
//   - allowing a request allocates nothing, except in the graph.
//
// It may import graph (vertices; the graph itself is behind the interface Graph), seedidentity and bootstraprules.
package authorizer
