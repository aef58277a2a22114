package testenv

import (
	"context"
	"time"

	"github.com/gardenlite/gardenlite/internal/landscape"
)

// Clock is the clock of a landscape: the real one until a test moves it. It never goes back.
type Clock struct{ landscape *landscape.Landscape }

// Clock returns the clock of the landscape, nil for one that Start did not start.
func (e *Env) Clock() *Clock {
	if e.landscape == nil {
		return nil
	}
	return &Clock{e.landscape}
}

// Now returns the time of the landscape.
func (c *Clock) Now() time.Time { return c.landscape.Clock().Now() }

// Since returns how long ago a time of the landscape was.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Advance moves the clock ahead. What is due at different times on the way happens in that order, and has happened when it returns: the
// end of Bastions, maintenance, hibernation schedules, rotations. An error says what has not.
func (c *Clock) Advance(ctx context.Context, d time.Duration) error {
	return c.AdvanceTo(ctx, c.Now().Add(d))
}

// AdvanceTo moves the clock ahead to a time, as Advance does.
func (c *Clock) AdvanceTo(ctx context.Context, to time.Time) error {
	return c.landscape.AdvanceClock(ctx, to, func(time.Time) {})
}

// Set moves the clock ahead to a time at once. What is due happens afterwards, in no order.
func (c *Clock) Set(to time.Time) error { return c.landscape.Clock().Set(to) }

// SetRate lets a number of seconds pass in a real one: 1 as usual, 0 stops the clock, at most 10,000. While it stands still, nothing that
// waits for something goes on: no Shoot is created, and only Advance lets it go for what becomes due.
func (c *Clock) SetRate(rate float64) error { return c.landscape.Clock().SetRate(rate) }
