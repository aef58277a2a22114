// Command clock measures how long the clock of a landscape of two seeds and five Shoots takes to be advanced by a day, beside the
// reconciliations of a day: one of each Shoot in its maintenance, and one of all where the advance ends.
//
//	go run ./clock -gardenlite ../bin/gardenlite
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const shoots, days = 5, 7

func main() { harness.Main(run) }

func run(ctx context.Context) error {
	l, err := harness.StartLandscape(ctx, "--seeds=2")
	if err != nil {
		return err
	}
	defer l.Remove()
	for i := range shoots {
		type object = map[string]any
		window := object{"begin": fmt.Sprintf("%02d0000+0000", 8+i), "end": fmt.Sprintf("%02d0000+0000", 9+i)}
		if err := l.CreateShoot(ctx, name(i), 1, object{"maintenance": object{"timeWindow": window}}); err != nil {
			return err
		}
	}
	if err := l.AwaitShoots(ctx, shoots); err != nil {
		return err
	}
	reconcile := func(int) error {
		for _, atOnce := range []int{1, shoots} {
			if err := harness.InParallel(ctx, atOnce, shoots, func(ctx context.Context, i int) error {
				_, err := l.Run(ctx, "shoot", "reconcile", name(i), "--wait")
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	}
	advance := func(int) error {
		_, err := l.Run(ctx, "clock", "advance", "1d")
		return err
	}
	return harness.Measure("a day of five Shoots with a node each", days,
		harness.Case{Name: "reconciliations, one after another and then all at once", Run: harness.Timed(reconcile)},
		harness.Case{Name: "gardenlite clock advance 1d", AtMost: time.Minute / 365, Run: harness.Timed(advance)},
	)
}

func name(i int) string { return fmt.Sprintf("s%d", i) }
