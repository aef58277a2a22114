package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// atOnce is how many clients create objects in parallel.
const atOnce = 16

// many measures what many Bastions at once cost. Each of them is used at the end.
func many(ctx context.Context, l *landscape, _ *plainServers, c config) error {
	begin := time.Now()
	if err := harness.InParallel(ctx, atOnce, c.many, func(ctx context.Context, i int) error {
		return l.configMap(ctx, fmt.Sprintf("many%d", i))
	}); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	base := time.Since(begin)
	before, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	all := make([]*bastion, c.many)
	begin = time.Now()
	if err := harness.InParallel(ctx, atOnce, c.many, func(ctx context.Context, i int) (err error) {
		all[i], err = l.newBastion(ctx, fmt.Sprintf("many%d", i))
		return err
	}); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	for _, b := range all {
		t, err := l.route(b).dial()
		if err != nil {
			return fmt.Errorf("bastion %s: %w", b.name, err)
		}
		t.close()
	}
	begin = time.Now()
	if err := l.deleteBastions(ctx, all...); err != nil {
		return err
	}
	gone := time.Since(begin)
	header(fmt.Sprintf("%d at once", c.many))
	row("ConfigMaps created and watched", seconds(base), 1, "", false)
	row("Bastions created and ready", seconds(took), ratio(took, base), "at most 30 s", took <= 30*time.Second)
	row("Bastions deleted and gone", seconds(gone), ratio(gone, base), "", false)
	each := (float64(after) - float64(before)) / float64(c.many) / 1e6
	fmt.Printf("%-66s %9.2f MB %8s%s\n", "resident memory of each", each, "", verdict("at most 1 MB", each <= 1))
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
