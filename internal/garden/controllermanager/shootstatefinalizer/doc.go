// Package shootstatefinalizer keeps the ShootState of a Shoot while its control plane moves to another Seed: from the
// beginning of the migration until it is restored, nobody can delete what it will be restored from.
//
// It may import API types and the finalizers and the kit beside it.
package shootstatefinalizer
