// Package operation has what the controllers of Gardener's objects share, those of the gardenlet and of extensions:
// which operation an object is due for, how the status reports it, and finalizers. It imports nothing of the project.
//
// It guarantees that a finalizer is written only if the object has not changed since it was read.
package operation
