package e2e

import (
	"os/exec"
	"testing"
	"time"
)

// TestKilledClock kills the process while its clock is advanced: the clock is not set back, and each maintenance happens once.
func TestKilledClock(t *testing.T) {
	t.Parallel()
	random := killMoments(t)
	l := newLandscape(t)
	y := &year{l: l, recorded: map[string][]shootState{}}
	y.newShoot(t, 1)
	s := y.shoots[0]
	s.waitForSucceeded(t)
	day := l.clock(t).Now.Add(24 * time.Hour).Truncate(24 * time.Hour)
	l.setClock(t, day)
	y.record(t)
	for range 2 * kills() {
		before := l.clock(t).Now
		advance := exec.Command(binary, "clock", "advance", "30h", "--data-dir", l.dir)
		must(t, advance.Start())
		l.killAfter(within(random, 6*time.Second))
		_ = advance.Wait() // it fails if it had not ended
		l.up(t)
		if after := l.clock(t).Now; after.Before(before) || after.After(before.Add(31*time.Hour)) {
			t.Errorf("it was %s, and is %s after a kill", before, after)
		}
	}
	s.waitForSucceeded(t)
	s.healthy(t)
	now := l.clock(t).Now
	perDay := y.maintained(t, s, 1, day)
	for d := 0; day.Add(time.Duration(d)*24*time.Hour + 10*time.Hour).Before(now); d++ {
		if perDay[d] != 1 {
			t.Errorf("%d reconciliations in the maintenance of day %d", perDay[d], d)
		}
	}
}
