package supervisor

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/landscape/control"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// runner ends at once if ends is set, and with its context otherwise.
type runner struct{ ends bool }

func (r *runner) Run(ctx context.Context) error {
	if !r.ends {
		<-ctx.Done()
	}
	return errors.New("ended")
}

// TestRestarts has a component end by itself, and fail to be made again twice: it runs in the end.
func TestRestarts(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	s := &Supervisor{Status: &control.Store{}, Clock: clk}
	made := make(chan int, 10)
	count := 0
	stop, err := s.Start("component", func() (Runner, error) {
		count++
		made <- count
		if count == 2 || count == 3 {
			return (*runner)(nil), errors.New("the API server does not answer")
		}
		return &runner{ends: count == 1}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 4; want++ {
		if want > 1 {
			testutil.EventuallyTrue(t, "a pause", clk.HasWaiters)
			clk.Step(restartLast)
		}
		if got := <-made; got != want {
			t.Fatalf("runner %d is made, not %d", got, want)
		}
	}
	stop()
	if count != 4 {
		t.Errorf("%d runners were made", count)
	}
}
