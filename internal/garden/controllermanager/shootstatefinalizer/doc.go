// Package shootstatefinalizer protects the ShootState of a Shoot while its control plane moves to another Seed: a
// finalizer blocks its deletion from the beginning of the migration until the control plane is restored from it.
//
// It may import API types and the finalizers and the kit beside it.
package shootstatefinalizer
