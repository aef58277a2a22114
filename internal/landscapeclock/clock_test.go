package landscapeclock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// frozen returns a clock that stands still.
func frozen(t *testing.T) (c *Clock, start time.Time) {
	t.Helper()
	c = New(nil, nil)
	if err := c.SetRate(0); err != nil {
		t.Fatal(err)
	}
	return c, c.Now()
}

func set(t *testing.T, c *Clock, to time.Time) {
	t.Helper()
	if err := c.Set(to); err != nil {
		t.Fatal(err)
	}
}

func fired(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestTimers(t *testing.T) {
	c, start := frozen(t)
	hour, day, ticker := c.NewTimer(time.Hour), c.NewTimer(24*time.Hour), c.NewTicker(time.Minute)
	due := c.NewTimer(-time.Second)
	if !fired(due.C()) || fired(hour.C()) || fired(ticker.C()) {
		t.Error("only what is due already has fired")
	}
	set(t, c, start.Add(2*time.Hour))
	if !fired(hour.C()) || fired(hour.C()) || fired(day.C()) || !fired(ticker.C()) || fired(ticker.C()) {
		t.Error("after two hours, the timer of an hour and one tick have fired")
	}
	if hour.Stop() || !day.Stop() || day.Stop() || day.Reset(time.Hour) {
		t.Error("active are the timers that have neither fired nor been stopped")
	}
	ticker.Stop()
	set(t, c, start.Add(3*time.Hour))
	if !fired(day.C()) || fired(ticker.C()) {
		t.Error("a timer that is reset fires, a ticker that is stopped does not")
	}
	if len(c.waiters) != 0 {
		t.Errorf("%d timers are kept", len(c.waiters))
	}
}

// TestGoes: timers fire by themselves, sooner on a faster clock.
func TestGoes(t *testing.T) {
	for _, rate := range []float64{1, MaxRate} {
		c := New(nil, nil)
		if err := c.SetRate(rate); err != nil {
			t.Fatal(err)
		}
		begin := c.Now()
		d := time.Duration(rate * float64(5*time.Millisecond))
		if at := <-c.After(d); at.Sub(begin) < d {
			t.Errorf("at rate %g, a timer of %s has fired after %s", rate, d, at.Sub(begin))
		}
	}
}

func TestRefuses(t *testing.T) {
	c, start := frozen(t)
	if err := c.Set(start.Add(-time.Second)); !errors.Is(err, ErrBack) {
		t.Errorf("back: %v", err)
	}
	if err := c.Set(start.Add(2 * MaxAdvance)); err == nil {
		t.Error("it goes as far as one wants")
	}
	for _, rate := range []float64{-1, 2 * MaxRate} {
		if err := c.SetRate(rate); err == nil {
			t.Errorf("it goes %g seconds in a real one", rate)
		}
	}
	kept := New(nil, func(History) error { return errors.ErrUnsupported })
	if err := kept.Set(kept.Now().Add(time.Hour)); !errors.Is(err, errors.ErrUnsupported) || kept.Offset() > time.Minute {
		t.Errorf("a time that cannot be kept: %v, %s ahead", err, kept.Offset())
	}
}

// TestGoesOn: a clock with the history of another one goes on where that was.
func TestGoesOn(t *testing.T) {
	var kept History
	c := New(nil, func(h History) error { kept = h; return nil })
	set(t, c, c.Now().Add(1000*time.Hour))
	if err := kept.Validate(); err != nil {
		t.Fatal(err)
	}
	next := New(kept, nil)
	if now, was := next.Now(), c.Now(); now.Sub(was).Abs() > time.Minute {
		t.Errorf("it was %s, and is %s", was, now)
	}
	if err := slices.Concat(kept, kept).Validate(); err == nil {
		t.Error("a history that goes back is one")
	}
}

func TestAt(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	c := New(History{
		{Real: start, Time: start, Rate: 1},
		{Real: start.Add(10 * time.Minute), Time: start.Add(24 * time.Hour), Rate: 1},
		{Real: start.Add(20 * time.Minute), Time: start.Add(24*time.Hour + 10*time.Minute), Rate: 60},
		{Real: start.Add(30 * time.Minute), Time: start.Add(48 * time.Hour), Rate: 1},
	}, nil)
	for real, want := range map[time.Duration]time.Duration{
		-time.Minute: -time.Minute, 5 * time.Minute: 5 * time.Minute, 11 * time.Minute: 24*time.Hour + time.Minute,
		21 * time.Minute: 24*time.Hour + 10*time.Minute + time.Hour, 40 * time.Minute: 48*time.Hour + 10*time.Minute,
		2 * time.Hour: 2 * time.Hour, // it is the landscape's already
	} {
		if at := c.At(start.Add(real)); at.Sub(start) != want {
			t.Errorf("%s after the start, it was %s after it", real, at.Sub(start))
		}
	}
	// At 24 hours it jumped by 23 h 50 min, and at 48 hours by 13 h 50 min.
	for since, want := range map[time.Duration]time.Duration{
		5 * time.Minute: 10*time.Hour + 45*time.Minute,
		48 * time.Hour:  30 * time.Minute,
	} {
		if lived := c.Lived(start.Add(since)).Round(time.Minute); lived != want {
			t.Errorf("%s after the start is %s ago without what was skipped, want %s", since, lived, want)
		}
	}
	if real := (clock.RealClock{}); At(real, start) != start || Lived(real, start) < time.Hour {
		t.Error("a real clock moves")
	}
}

// TestAtWholeSeconds: what Kubernetes stamps in the second of an advance happened after it.
func TestAtWholeSeconds(t *testing.T) {
	second := time.Now().Add(-time.Minute).Truncate(time.Second)
	c := New(History{{Real: second.Add(-time.Hour), Time: second.Add(-time.Hour), Rate: 1},
		{Real: second.Add(900 * time.Millisecond), Time: second.Add(24 * time.Hour), Rate: 1}}, nil)
	for real, want := range map[time.Duration]time.Duration{
		-time.Second: -time.Second, 0: 24*time.Hour - 900*time.Millisecond, time.Second: 24*time.Hour + 100*time.Millisecond,
		500 * time.Millisecond: 500 * time.Millisecond,
	} {
		if at := c.At(second.Add(real)); at.Sub(second) != want {
			t.Errorf("%s after the second began, it was %s after that, want %s", real, at.Sub(second), want)
		}
	}
	late := New(nil, nil)
	set(t, late, late.Now().Add(24*time.Hour))
	if now := time.Now().Truncate(time.Second); late.Now().Sub(late.At(now)) > 2*time.Second {
		t.Errorf("what happened now was %s ago", late.Now().Sub(late.At(now)))
	}
}

type queue int

func (q *queue) Len() int { return int(*q) }

// TestAdvance: an advance stops at each date in its order, waits for what works, and ends with an error where something does not end.
func TestAdvance(t *testing.T) {
	c, start := frozen(t)
	q := new(queue)
	defer Watch(c, q)()
	type event struct {
		what string
		at   time.Time
	}
	events := make(chan event, 10)
	for what, after := range map[string]time.Duration{"third": 50 * 24 * time.Hour, "first": time.Hour, "second": 2 * time.Hour} {
		timer := c.NewTimer(after)
		UntilDue(c, start.Add(after))
		go func() {
			<-timer.C()
			Begin(c)
			defer End(c)
			events <- event{what, c.Now()}
		}()
	}
	steps := 0
	err := c.Advance(t.Context(), start.Add(60*24*time.Hour), func(context.Context) error {
		if left := UntilArrival(c); !c.Now().Add(left).Equal(start.Add(60 * 24 * time.Hour)) {
			t.Errorf("it is %s, and %s are left", c.Now().Sub(start), left)
		}
		return nil
	}, func(time.Time) { steps++ })
	if err != nil || !c.Now().Equal(start.Add(60*24*time.Hour)) {
		t.Errorf("%v, and it is %s", err, c.Now().Sub(start))
	}
	last := start
	for _, what := range []string{"first", "second", "third"} {
		e := <-events
		if e.what != what || !e.at.After(last) {
			t.Errorf("%s at %s instead of %s", e.what, e.at.Sub(start), what)
		}
		last = e.at
	}
	if left := UntilArrival(c); left != 0 {
		t.Errorf("it has arrived, and %s are left", left)
	}
	if steps != 5 { // three dates, 30 days after the second one, the end
		t.Errorf("%d steps", steps)
	}

	*q = 1
	ctx, cancel := context.WithTimeout(t.Context(), 10*quietFor)
	defer cancel()
	if err := c.Advance(ctx, c.Now().Add(time.Hour), nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a queue is full: %v", err)
	}
	*q = 0
	wrong := errors.New("wrong")
	err = c.Advance(t.Context(), c.Now().Add(100*time.Hour), func(context.Context) error { return wrong }, nil)
	if !errors.Is(err, wrong) {
		t.Errorf("what does not end: %v", err)
	}
}
