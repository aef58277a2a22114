// Package shootmigration says on a Shoot that is to move to another Seed whether that Seed is ready for it: the source's
// gardenlet begins the migration once the constraint ReadyForMigration is True, and the constraint goes with it.
//
// It may import API types and the kit beside it.
package shootmigration
