package e2e

import (
	"os/exec"
	"testing"
	"time"
)

// TestKilledClock kills the process while its clock is advanced: the clock is not set back, and each maintenance, each hibernation and
// each rotation happens once. A start in the time window of a maintenance is another maintenance, as with Gardener.
func TestKilledClock(t *testing.T) {
	t.Parallel()
	random := killMoments(t)
	l := newLandscape(t)
	y := &year{l: l, recorded: map[string][]shootState{}}
	y.newShoot(t, 1, rotates("72h"), sleeps)
	s := y.shoots[0]
	s.waitForSucceeded(t)
	day := l.clock(t).Now.Add(24 * time.Hour).Truncate(24 * time.Hour)
	l.setClock(t, day)
	y.record(t)
	starts := map[int]int{} // in the maintenance of a day
	for range 2 * kills() {
		before := l.clock(t).Now
		advance := exec.Command(binary, "clock", "advance", "30h", "--data-dir", l.dir)
		must(t, advance.Start())
		l.killAfter(within(random, 6*time.Second))
		_ = advance.Wait() // it fails if it had not ended
		l.up(t)
		after := l.clock(t).Now
		if after.Before(before) || after.After(before.Add(31*time.Hour)) {
			t.Errorf("it was %s, and is %s after a kill", before, after)
		}
		if d, in := dayOfWindow(after.Sub(day), 1); in {
			starts[d]++
		}
	}
	l.setClock(t, l.clock(t).Now.Add(24*time.Hour).Truncate(24*time.Hour).Add(12*time.Hour)) // it is awake
	s.waitForSucceeded(t)
	s.healthy(t)
	days := int(l.clock(t).Now.Sub(day) / (24 * time.Hour))
	perDay, rotations := y.maintained(t, s, 1, day)
	for d := range days {
		if perDay[d] < 1 || perDay[d] > 1+rotations[d]+starts[d] {
			t.Errorf("%d reconciliations in the maintenance of day %d, in which the process has started %d times", perDay[d], d, starts[d])
		}
	}
	hibernations, keyRotations := y.triggered(t, s)
	checkNights(t, s, hibernations, day, day.Add(time.Duration(days)*24*time.Hour))
	checkPeriods(t, s, keyRotations, 72*time.Hour)
	t.Logf("%d days, %d starts in maintenances, %d hibernations, %d rotations", days, len(starts), len(hibernations), len(keyRotations))
}
