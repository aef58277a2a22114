package e2e

import "testing"

// turn is a test that has a landscape for itself while it runs, and leaves nothing that disturbs the next one.
type turn struct {
	name string
	run  func(*testing.T)
}

// inTurn runs tests one after the other. It ends with the first one that fails: the landscape may be of no use then.
func inTurn(t *testing.T, turns ...turn) {
	t.Helper()
	for _, turn := range turns {
		if !t.Run(turn.name, turn.run) {
			return
		}
	}
}

// TestOneSeed has the tests that count what is in a landscape with one seed, or restart it.
func TestOneSeed(t *testing.T) {
	t.Parallel()
	l := newLandscape(t, "--resource-admission-configuration", limitsFile(t))
	inTurn(t,
		turn{"limits of resources", l.resourceLimits},
		turn{"the deletion of Shoots leaves nothing", l.shootDeletionLeavesNothing},
		turn{"policies of extensions", l.followPolicies},
		turn{"an extension in use", l.registrationInUseStays},
		turn{"charts", l.charts},
		turn{"charts from registries", l.chartsFromRegistries},
		turn{"an extension whose controller is a process", l.extensionCommands},
		turn{"certificates of a gardenlet under load", l.gardenletCertificateRotatedUnderLoad},
		turn{"certificate of a gardenlet that expired while it was down", l.gardenletCertificateExpiredWhileDown},
		turn{"Shoots after a restart", l.shootRestarts},
		turn{"a lease that is not renewed", l.leaseThatStops},
		turn{"a seed in another process", l.seedElsewhere},
		turn{"seeds that are added and removed", l.changeSeeds},
	)
}

// TestTwoSeeds has the tests that move Shoots between two seeds, and the one that deletes a Seed.
func TestTwoSeeds(t *testing.T) {
	t.Parallel()
	l := newLandscape(t, "--seeds", "2", "--bastion-time-to-live", "24h")
	inTurn(t,
		turn{"names of another seed's Shoot", l.seedTakesNothing},
		turn{"migration", l.shootMigrates},
		turn{"rotations of SSH keys", l.sshKeyRotations},
		turn{"the login Secret of a Seed", l.seedLogin},
	)
}

// TestBastions has the tests of Bastions that restart their landscape, in the end with a reset.
func TestBastions(t *testing.T) {
	t.Parallel()
	l := newLandscape(t)
	inTurn(t,
		turn{"rules", l.bastionRules},
		turn{"use", func(t *testing.T) {
			l.stop(t) // with the times of the rules
			l.up(t, "--seed-authorizer-reads", "all")
			l.readsAll(t)
			l.bastions(t)
		}},
	)
}
