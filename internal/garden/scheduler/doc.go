// Package scheduler assigns Shoots to seeds: the reconciler collects a Landscape, Choose chooses a seed from the
// Landscape alone, and the reconciler binds the Shoot through its binding subresource, or reports in the Shoot's
// status why no seed is eligible.
//
// It accesses the garden only through the given client configuration. It imports the API modules, controller-runtime,
// and the package component of the project. It chooses the same seeds as Gardener's scheduler (as of v1.150). In
// addition, it gives a reason for every seed, uses the name of the seed as the last tie-break, never exceeds the
// capacity of a seed however many Shoots are scheduled concurrently, and tries again as soon as something changes on
// which the last decision depended.
package scheduler
