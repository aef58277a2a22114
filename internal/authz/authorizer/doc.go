// Package authorizer decides what a gardenlet, or an extension on a seed, may do in the garden (SeedAuthorizer).
//
// The rules are one table, in table.go, in the order of Gardener's "Scoped API Access for gardenlets and Extensions",
// section "Implemented Rules"; rule.go says what its columns mean, authorizer.go applies it, explain.go tells people
// why. It promises that
//
//   - the answer is allow or no opinion, never deny, and no opinion for whatever it does not know;
//   - a request is allowed because of one row, whose words are in the reason;
//   - allowing allocates nothing, beside what the graph does.
//
// It may import graph (vertices; the graph itself is behind the interface Graph), seedidentity and bootstraprules.
package authorizer
