// Package shootmigration maintains the constraint ReadyForMigration of a Shoot that is to move to another Seed: it is
// True if that Seed is ready for the Shoot. The gardenlet of the source begins the migration once the constraint is
// True, and the controller removes it when the Shoot does not move any more.
//
// It may import API types and the kit beside it.
package shootmigration
