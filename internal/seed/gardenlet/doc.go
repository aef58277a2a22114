// Package gardenlet is the gardenlet of a seed: it gets its identity in the garden by TLS bootstrapping, registers its
// Seed, and runs the controllers below controller, each of which has a folder.
//
// It may import internal/authz/bootstraprules and what is below seed, and reaches the garden with its own identity only and
// the seed through the client configuration that it is given. It promises that Run, when it returns, has left no goroutine
// behind, and that several gardenlets can run in one process.
package gardenlet
