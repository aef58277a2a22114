// Package scheduler assigns Shoots without a seed to one: Choose decides on a Landscape without looking at anything else,
// the reconciler puts the Landscape together, and binds the Shoot through its binding subresource or says on the Shoot why
// no seed takes it.
//
// It reaches the garden only through the client configuration it is given, and imports the API modules and
// controller-runtime, nothing of the project. It promises what Gardener's scheduler does (the same seeds in the same
// landscapes, as of v1.149), and beyond it: a reason for every seed, the name of the seed as the last tie-break, no more
// Shoots on a seed than it has room for however many are scheduled at once, and another try as soon as something changes
// that the last one failed for.
package scheduler
