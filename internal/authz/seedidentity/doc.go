// Package seedidentity determines the seed for which a user acts: as its gardenlet, as an extension that runs on it, or
// for none.
//
// It guarantees that a user has an identity only if the user name and groups agree on one seed with a valid name; a
// malformed or ambiguous user has no identity (None). It reads names and groups only, is stateless, and allocates
// nothing. Condition, for an API server, is true for every user with an identity, and for hardly any other.
//
// It may import API types and constants, and nothing of the project.
package seedidentity
