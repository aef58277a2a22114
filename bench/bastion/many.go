package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// atOnce is how many clients create objects in parallel.
const atOnce = 16

// inParallel calls f for each number, atOnce calls at a time.
func inParallel(count int, f func(i int) error) error {
	numbers, errs := make(chan int), make(chan error, count)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for i := range numbers {
				errs <- f(i)
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// many measures what many Bastions at once cost. Each of them is used at the end.
func many(ctx context.Context, l *landscape, _ *plain, c config) error {
	begin := time.Now()
	if err := inParallel(c.many, func(i int) error { return l.configMap(ctx, fmt.Sprintf("many%d", i)) }); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	base := time.Since(begin)
	before, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	all := make([]*bastion, c.many)
	begin = time.Now()
	if err := inParallel(c.many, func(i int) (err error) {
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
	fmt.Printf("%-66s %9.2f MB %8s  (to be at most 1 MB: %s)\n", "resident memory of each", each, "",
		map[bool]string{true: "met", false: "NOT met"}[each <= 1])
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
