package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// timeToLive is the time to live of the Bastions that expire.
const timeToLive = time.Minute

// expiry measures how long a session goes on after its Bastion has expired.
func expiry(ctx context.Context, l *landscape, p *plainServers, c config) error {
	base, err := baselineExpiry(ctx, l, p, c.expiring)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	late := make([]time.Duration, c.expiring)
	errs := make([]error, c.expiring)
	var group sync.WaitGroup
	for i := range c.expiring {
		b, err := l.newBastion(ctx, fmt.Sprintf("expiry%d", i))
		if err != nil {
			return err
		}
		t, err := l.route(b).dial()
		if err != nil {
			return err
		}
		defer t.close()
		group.Go(func() {
			_ = t.node.Wait()
			if late[i] = time.Since(b.expires); late[i] < 0 {
				errs[i] = fmt.Errorf("the session of bastion %s ended %s too early", b.name, -late[i])
			}
		})
		time.Sleep(2 * time.Second) // API times are in whole seconds: each expires alone
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	header(fmt.Sprintf("median of %d", c.expiring))
	m, b := harness.Median(late), harness.Median(base)
	row("a ConfigMap deleted and gone, and a plain SSH server's connections cut", harness.MS(b), 1, "", false)
	row("a Bastion expired, and its session cut", harness.MS(m), ratio(m, b), "at most 1000 ms", m <= time.Second)
	worst := slices.Max(late)
	row("the slowest one", harness.MS(worst), ratio(worst, b), "", false)
	return nil
}

// baselineExpiry measures how long it takes to delete a ConfigMap and to close the connections of the plain SSH servers.
func baselineExpiry(ctx context.Context, l *landscape, p *plainServers, runs int) (took []time.Duration, err error) {
	for i := range runs {
		t, err := p.route().dial()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("expiry%d", i)
		if err := l.configMap(ctx, name); err != nil {
			return nil, err
		}
		gone, err := l.deleteConfigMap(ctx, name)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		p.disconnect()
		_ = t.node.Wait()
		took = append(took, gone+time.Since(begin))
		t.close()
	}
	return took, nil
}
