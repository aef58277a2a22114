// Package operation is what controllers of Gardener's objects have in common, gardenlet's as well as extensions': which
// operation an object is due for, how its state is told in the status, and finalizers. It imports nothing of the project.
//
// It promises that a finalizer is written only if the object has not changed since it was read.
package operation
