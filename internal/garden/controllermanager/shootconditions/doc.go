// Package shootconditions shows the conditions of a Seed on the Shoot that it runs in: a Shoot that a ManagedSeed
// registers has the Seed's conditions beside its own ones.
//
// It may import API types and the kit beside it.
package shootconditions
