// Package flow runs named tasks that depend on each other: those that may, at the same time. It tells how far it is, and
// what has gone wrong, in Gardener's words for a status: a percentage, the names of the tasks at work, errors with the
// task's name and codes. It may import Gardener's API types; it knows nothing of clusters.
//
// It promises that a task runs only after all that it comes after have succeeded, that Run returns only when no task is at
// work any more, that a task that panics has failed and nothing else, and that progress is told no more often than it is
// asked to. It keeps nothing between two runs: tasks are idempotent, so a flow that was cut off anywhere is run again.
package flow
