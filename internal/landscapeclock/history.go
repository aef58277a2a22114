package landscapeclock

import (
	"fmt"
	"slices"
	"sort"
	"time"
)

// maxSegments limits how much of the history is kept: the oldest changes are forgotten first.
const maxSegments = 2000

// History is what has become of a clock: one Segment for each change, the newest last.
type History []Segment

// Segment says that from a real time on, the time of the landscape goes on from Time, Rate seconds in each real one.
type Segment struct {
	Real time.Time `json:"real"`
	Time time.Time `json:"time"`
	Rate float64   `json:"rate"`
}

func (s Segment) at(real time.Time) time.Time {
	if s.Rate == 1 { // the difference is exact, and the result keeps the reading of the monotonic clock
		return real.Add(s.Time.Sub(s.Real))
	}
	return s.Time.Add(time.Duration(float64(real.Round(0).Sub(s.Real)) * s.Rate))
}

// at returns the time of the landscape at a real time. Before the first change it was the real one.
func (h History) at(real time.Time) time.Time {
	i := sort.Search(len(h), func(i int) bool { return h[i].Real.After(real) })
	if i == 0 {
		return real
	}
	return h[i-1].at(real)
}

// skippedSince returns how much time was skipped after a time of the landscape.
func (h History) skippedSince(t time.Time) (skipped time.Duration) {
	for i := len(h) - 1; i > 0 && h[i].Time.After(t); i-- {
		from := h[i-1].at(h[i].Real)
		if from.Before(t) {
			from = t
		}
		skipped += h[i].Time.Sub(from)
	}
	return skipped
}

// with returns the history with a change.
func (h History) with(s Segment) History {
	if len(h) >= maxSegments {
		h = h[len(h)-maxSegments+1:]
	}
	return append(slices.Clip(h), s)
}

// Validate returns an error if a history that was read is not one that a Clock has written.
func (h History) Validate() error {
	for i, s := range h {
		if s.Real.IsZero() || s.Time.IsZero() || !(s.Rate >= 0 && s.Rate <= MaxRate) || s.Time.Sub(s.Real) > 2*MaxAdvance ||
			i > 0 && s.Real.Before(h[i-1].Real) {
			return fmt.Errorf("its entry %d says that from %s on it was %s, %g seconds in each", i, s.Real, s.Time, s.Rate)
		}
	}
	return nil
}
