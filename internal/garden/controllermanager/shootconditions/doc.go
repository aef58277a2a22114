// Package shootconditions copies the conditions of a Seed to the Shoot in which it runs: a Shoot that a ManagedSeed
// registers as a Seed has the Seed's conditions beside its own ones.
//
// It may import API types and the kit beside it.
package shootconditions
