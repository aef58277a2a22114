// Package seedidentity says which seed a user acts for: as its gardenlet, as an extension that runs on it, or for none.
//
// It promises that an identity is given only where user name and groups agree on one seed whose name can be the name
// of a Seed; a user that is malformed or ambiguous has no identity (None). It reads names and groups only, keeps nothing,
// and allocates nothing. Condition, for an API server, is true for every user with an identity, and for hardly any other.
//
// It may import API types and constants, and nothing of the project.
package seedidentity
