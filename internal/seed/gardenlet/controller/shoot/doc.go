// Package shoot is the gardenlet's controller of Shoots: for each that the seed is responsible for it has a namespace in the
// seed, named after the Shoot's technical ID, and a Cluster resource from which extensions learn of it. It may import the
// gardenlet's flows and what controllers of Gardener's objects have in common.
//
// That is the first step of a reconciliation. What comes after it is not there yet, and the Shoot's last operation says so:
// it stays Processing.
//
// It promises that a Shoot is gone from the garden only after everything of it has gone from the seed; that status.uid is
// there before anything else is; and that nothing is done for a Shoot that moves to another seed.
package shoot
