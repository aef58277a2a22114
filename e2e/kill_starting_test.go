//go:build soak

package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"
)

// TestKilledWhileStarting kills the process while it starts for the first time. The next start has the same
// result as an undisturbed one.
func TestKilledWhileStarting(t *testing.T) {
	t.Parallel()
	random, begin := killMoments(t), time.Now()
	undisturbed := newLandscape(t)
	most := max(3*time.Second, time.Since(begin))
	undisturbed.hasOneSeed(t)
	want := counts(undisturbed.mustInventory(t))
	undisturbed.kill()
	for range kills() {
		delay := within(random, most)
		t.Run(delay.String(), func(t *testing.T) {
			l := stoppedLandscape(t)
			l.start(t)
			l.killAfter(delay)
			l.up(t)
			l.hasOneSeed(t)
			l.listable = undisturbed.listable
			eventually(t, shootTimeout, func(ctx context.Context) error {
				now, err := l.inventory(ctx)
				if err == nil && !maps.Equal(counts(now), want) {
					err = fmt.Errorf("objects: %v, of an undisturbed landscape %v", counts(now), want)
				}
				return err
			})
			l.expectNothingForbidden(t)
		})
	}
}
