// Command access measures scoped access in a landscape with the real API server and the real certificates: what the
// authorization webhook adds to the requests of gardenlets, what it adds to the requests of other users (nothing),
// and what the admission webhook adds to creates. The resource dependency graph alone is measured by
// hack/bench-authz.
//
// Server, webhooks and this program share the machine. Whatever is compared is measured in turns, so that a busy
// moment affects both sides, and the turns without other busy programs are also printed separately. The command
// fails only when it cannot measure; numbers beyond their limits are marked with an exclamation mark.
//
//	go run ./access -gardenlite ../bin/gardenlite
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

type config struct {
	shoots   int
	rate     int
	duration time.Duration
	turns    int
	ordinary int
}

func main() {
	var c config
	flag.IntVar(&c.shoots, "shoots", 300, "how many Shoots; an even number")
	flag.IntVar(&c.rate, "rate", 500, "requests per second")
	flag.DurationVar(&c.duration, "duration", 15*time.Second, "how long requests are sent at that rate, for each kind of user")
	flag.IntVar(&c.turns, "turns", 15, "how many turns each comparison takes")
	flag.IntVar(&c.ordinary, "requests", 10000, "how many requests an ordinary user sends")
	harness.Main(func(ctx context.Context) error { return bench(ctx, c) })
}

func bench(ctx context.Context, c config) error {
	if c.shoots < 2 || c.shoots%2 != 0 || c.rate < 1 || c.turns < 1 || c.ordinary < 4 || c.perTurn() < 1 {
		return errors.New("-shoots has to be even, the other numbers positive, and -duration long enough for a request in each of the -turns")
	}
	a, err := startActors(ctx, c.shoots)
	if err != nil {
		return err
	}
	defer a.Remove()
	if err := a.check(ctx, c.shoots); err != nil {
		return fmt.Errorf("the webhook does not decide as it should: %w", err)
	}
	fmt.Printf("%d CPUs, %d Shoots on %d seeds\n", runtime.NumCPU(), c.shoots, len(seeds))
	if err := measureAuthorization(ctx, c, a); err != nil {
		return fmt.Errorf("measuring authorization: %w", err)
	}
	if err := measureAdmission(ctx, c, a); err != nil {
		return fmt.Errorf("measuring admission: %w", err)
	}
	if err := measureOrdinary(ctx, c, a); err != nil {
		return fmt.Errorf("measuring requests of ordinary users: %w", err)
	}
	return nil
}

// perTurn returns how many requests are sent at the constant rate in a turn.
func (c config) perTurn() int { return int(c.duration.Seconds() * float64(c.rate) / float64(c.turns)) }
