// Package flow runs named tasks that depend on each other, and independent tasks in parallel. It reports the progress and
// the errors in the form of Gardener's status: a percentage, the names of the running tasks, and errors with the task's
// name and codes. It may import Gardener's API types; it knows nothing of clusters.
//
// It promises that a task runs only after all its predecessors have succeeded, that Run returns only when no task is
// running any more, that a panic only fails its task, and that progress is reported no more often than requested. It keeps
// no state between two runs: tasks are idempotent, so that an interrupted flow can simply be run again.
package flow
