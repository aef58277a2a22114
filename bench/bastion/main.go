// Command bastion measures Bastions: how long it takes from creating one to a prompt on the node, what 200 of them
// cost, how soon a session is cut when its Bastion has expired, and what 50 sessions move at once. In the same run,
// it measures a baseline for each: ConfigMaps in place of Bastions, and SSH servers of golang.org/x/crypto, one
// reached through the other, in place of machines.
//
//	go run ./bastion -gardenlite ../bin/gardenlite
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/gardenlite/gardenlite/bench/harness"
)

type config struct {
	part                 string
	runs, many, sessions int
	expiring, bytes      int
}

func main() {
	var c config
	flag.StringVar(&c.part, "part", "", "one of prompts, many, throughput and expiry; all if it is empty")
	flag.IntVar(&c.runs, "runs", 20, "how often a prompt is waited for; the median is printed")
	flag.IntVar(&c.many, "many", 200, "how many bastions there are at once")
	flag.IntVar(&c.expiring, "expiring", 5, "how many bastions expire; the median is printed, and the slowest one")
	flag.IntVar(&c.sessions, "sessions", 50, "how many sessions move bytes at once")
	flag.IntVar(&c.bytes, "bytes", 10_000_000, "how many bytes each session moves, to the node and then from it")
	harness.Main(func(ctx context.Context) error { return bench(ctx, c) })
}

func bench(ctx context.Context, c config) error {
	servers, err := startPlainServers()
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	for _, part := range []struct {
		name  string
		flags []string
		run   func(context.Context, *landscape, *plainServers, config) error
	}{
		{"prompts", nil, prompts}, {"many", nil, many}, {"throughput", nil, throughput},
		{"expiry", []string{"--bastion-time-to-live=1m"}, expiry},
	} {
		if c.part != "" && c.part != part.name {
			continue
		}
		l, err := startLandscape(ctx, part.flags...)
		if err != nil {
			return err
		}
		err = part.run(ctx, l, servers, c)
		l.Remove()
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// prompts measures how long it takes from creating a Bastion to a prompt on the node.
func prompts(ctx context.Context, l *landscape, p *plainServers, c config) error {
	var bastions []*bastion
	var creations []time.Duration
	if err := harness.Measure("creation", c.runs,
		harness.Case{Name: "a ConfigMap created and watched", Run: harness.Timed(func(i int) error {
			return l.configMap(ctx, fmt.Sprintf("prompt%d", i))
		})},
		harness.Case{Name: "a Bastion created and ready", Run: func(i int) (time.Duration, error) {
			begin := time.Now()
			b, err := l.newBastion(ctx, fmt.Sprintf("prompt%d", i))
			bastions, creations = append(bastions, b), append(creations, time.Since(begin))
			return creations[i], err
		}}); err != nil {
		return err
	}
	var took time.Duration
	return harness.Measure("a prompt on the node", c.runs,
		harness.Case{Name: "through two plain SSH servers", Run: harness.Timed(func(int) error {
			return p.route().prompt()
		})},
		harness.Case{Name: "through a bastion", Run: func(i int) (time.Duration, error) {
			begin := time.Now()
			err := l.route(bastions[i]).prompt()
			took = time.Since(begin)
			return took, err
		}},
		harness.Case{Name: "the creation of the Bastion included", AtMost: time.Second,
			Run: func(i int) (time.Duration, error) { return creations[i] + took, nil }})
}

// many measures what many Bastions at once cost. Each of them is used at the end.
func many(ctx context.Context, l *landscape, _ *plainServers, c config) error {
	all, before := make([]*bastion, c.many), 0.0
	if err := harness.Measure(fmt.Sprintf("%d at once", c.many), 1,
		harness.Case{Name: "ConfigMaps created and watched", Run: harness.Timed(func(int) error {
			return harness.InParallel(ctx, harness.AtOnce, c.many, func(ctx context.Context, i int) error {
				return l.configMap(ctx, fmt.Sprintf("many%d", i))
			})
		})},
		harness.Case{Name: "Bastions created and ready", AtMost: 30 * time.Second,
			Run: func(int) (_ time.Duration, err error) {
				if before, err = l.Memory(ctx); err != nil {
					return 0, err
				}
				begin := time.Now()
				err = harness.InParallel(ctx, harness.AtOnce, c.many, func(ctx context.Context, i int) (err error) {
					all[i], err = l.newBastion(ctx, fmt.Sprintf("many%d", i))
					return err
				})
				return time.Since(begin), err
			}}); err != nil {
		return err
	}
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
	begin := time.Now()
	if err := l.deleteBastions(ctx, all...); err != nil {
		return err
	}
	harness.Row("Bastions deleted and gone", harness.MS(time.Since(begin)))
	each := (after - before) / float64(c.many)
	harness.Row("resident memory of each", harness.MB(each), harness.Limit(each <= 1e6, "at most 1 MB"))
	return nil
}

// throughput measures how many bytes a second simultaneous sessions through one bastion move.
func throughput(ctx context.Context, l *landscape, p *plainServers, c config) error {
	b, err := l.newBastion(ctx, "throughput")
	if err != nil {
		return err
	}
	fmt.Printf("\n%d sessions at once, each %d MB in each direction\n", c.sessions, c.bytes/1_000_000)
	for _, toNode := range []bool{true, false} {
		direction := map[bool]string{true: "to the node, ", false: "from the node, "}[toNode]
		base, err := p.route().throughput(ctx, c, toNode)
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		harness.Row(direction+"through two plain SSH servers", harness.MB(base)+"/s")
		rate, err := l.route(b).throughput(ctx, c, toNode)
		if err != nil {
			return err
		}
		harness.Row(direction+"through a bastion", harness.MB(rate)+"/s", harness.Ratio(rate, base),
			harness.Limit(rate >= 100e6, "at least 100 MB/s"))
	}
	return nil
}

// throughput opens c.sessions connections, and returns how many bytes a second all of them together move.
func (r route) throughput(ctx context.Context, c config, toNode bool) (float64, error) {
	tunnels := make([]*tunnel, c.sessions)
	for i := range tunnels {
		t, err := r.dial()
		if err != nil {
			return 0, err
		}
		defer t.close()
		tunnels[i] = t
	}
	begin := time.Now()
	err := harness.InParallel(ctx, c.sessions, c.sessions, func(_ context.Context, i int) error {
		return tunnels[i].move(c.bytes, toNode)
	})
	return float64(c.sessions*c.bytes) / time.Since(begin).Seconds(), err
}

// expiry measures how long a session goes on after its Bastion has expired.
func expiry(ctx context.Context, l *landscape, p *plainServers, c config) error {
	ended := make([]chan time.Duration, c.expiring)
	for i := range ended {
		b, err := l.newBastion(ctx, fmt.Sprintf("expiry%d", i))
		if err != nil {
			return err
		}
		t, err := l.route(b).dial()
		if err != nil {
			return err
		}
		defer t.close()
		ended[i] = make(chan time.Duration, 1)
		go func() {
			_ = t.node.Wait()
			ended[i] <- time.Since(b.expires)
		}()
		time.Sleep(2 * time.Second) // API times are in whole seconds: each expires alone
	}
	return harness.Measure("expiry", c.expiring,
		harness.Case{Name: "a ConfigMap deleted and gone, and a plain SSH server's connections cut",
			Run: func(i int) (time.Duration, error) {
				return l.plainExpiry(ctx, p, fmt.Sprintf("expiry%d", i))
			}},
		harness.Case{Name: "a Bastion expired, and its session cut", AtMost: time.Second,
			Run: func(i int) (time.Duration, error) {
				select {
				case late := <-ended[i]:
					if late < 0 {
						return late, fmt.Errorf("the session ended %s too early", -late)
					}
					return late, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}})
}

// plainExpiry returns how long it takes to delete a ConfigMap and to close the connections of the plain SSH servers.
func (l *landscape) plainExpiry(ctx context.Context, p *plainServers, name string) (time.Duration, error) {
	t, err := p.route().dial()
	if err != nil {
		return 0, err
	}
	defer t.close()
	if err := l.configMap(ctx, name); err != nil {
		return 0, err
	}
	gone, err := l.deleteConfigMap(ctx, name)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	p.disconnect()
	_ = t.node.Wait()
	return gone + time.Since(begin), nil
}
