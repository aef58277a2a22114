package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestKilled kills the process of a landscape of its own at each of these moments, and starts it again; the soak does so by
// the dozen. Each moment says what has to hold afterwards, and leaves nothing that disturbs the next one.
func TestKilled(t *testing.T) {
	t.Parallel()
	random := killMoments(t)
	l := stoppedLandscape(t)
	at := func(name string, kill func(*testing.T, *rand.Rand)) turn {
		return turn{name, func(t *testing.T) {
			kill(t, random)
			l.expectNothingForbidden(t)
		}}
	}
	inTurn(t,
		at("first start", l.killedAtFirst),
		at("seeds come and go", l.killedUnderSeeds), // from here on there are two
		at("clients write", l.killedUnderWrites),
		at("Projects come and go", l.killedUnderProjects),
		at("operations of a Shoot", l.killedUnderShoots),
		at("machines are replaced", l.killedWhileRolling),
		at("migration", l.killedUnderMigration),
		at("steps of a Bastion", l.killedUnderBastions),
		at("changes that follow each other", l.killedAnywhere),
	)
}

// kills is how often the process is killed at a moment.
func kills() int {
	if testutil.Soaking() {
		return 10
	}
	return 1
}

// killedAtFirst kills the process while it starts for the first time.
func (l *landscape) killedAtFirst(t *testing.T, random *rand.Rand) {
	l.start(t, "--seeds", "1")
	l.killAfter(within(random, 3*time.Second))
	l.up(t, "--seeds", "1")
	l.hasOneSeed(t)
}
