package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

// throughput measures how many bytes a second simultaneous sessions through one bastion move.
func throughput(ctx context.Context, l *landscape, p *plainServers, c config) error {
	b, err := l.newBastion(ctx, "throughput")
	if err != nil {
		return err
	}
	baseUp, baseDown, err := p.route().move(ctx, c)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	up, down, err := l.route(b).move(ctx, c)
	if err != nil {
		return err
	}
	header(fmt.Sprintf("%d sessions at once, each %d MB in each direction", c.sessions, c.bytes/1_000_000))
	row("to the second one of two plain SSH servers", rate(baseUp), 1, "", false)
	row("to the node through a bastion", rate(up), up/baseUp, "at least 100 MB/s", up >= 100e6)
	row("from the second one of two plain SSH servers", rate(baseDown), 1, "", false)
	row("from the node through a bastion", rate(down), down/baseDown, "at least 100 MB/s", down >= 100e6)
	return l.deleteBastions(ctx, b)
}

func rate(r float64) string { return fmt.Sprintf("%.0f MB/s", r/1e6) }

// move opens c.sessions connections, and returns how many bytes a second all of them together move to the node, and
// from it.
func (r route) move(ctx context.Context, c config) (up, down float64, err error) {
	tunnels := make([]*tunnel, c.sessions)
	for i := range tunnels {
		if tunnels[i], err = r.dial(); err != nil {
			return 0, 0, err
		}
		defer tunnels[i].close()
	}
	all := func(move func(t *tunnel, bytes int) error) (float64, error) {
		begin := time.Now()
		err := harness.InParallel(ctx, len(tunnels), len(tunnels), func(_ context.Context, i int) error { return move(tunnels[i], c.bytes) })
		return float64(c.sessions*c.bytes) / time.Since(begin).Seconds(), err
	}
	if up, err = all((*tunnel).send); err == nil {
		down, err = all((*tunnel).receive)
	}
	return up, down, err
}
