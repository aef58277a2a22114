package landscape

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// A component that ends by itself is started anew, after a pause that doubles from the first to the last of these.
const (
	restartFirst = time.Second
	restartLast  = 30 * time.Second
)

// runner is a part of the process that runs until its context ends.
type runner interface {
	Run(context.Context) error
}

// supervise runs a component until it is stopped. The first one is made at once, so that what stands in its way fails the
// start; if one ends by itself, another one is made.
func (l *Landscape) supervise(name string, newRunner func() (runner, error)) (stop func(), err error) {
	l.board.component(name, StateStarting, "")
	current, err := newRunner()
	if err != nil {
		l.board.component(name, StateFailed, err.Error())
		return nil, fmt.Errorf("starting the %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.keepRunning(ctx, name, current, newRunner)
	}()
	return func() {
		l.board.component(name, StateStopping, "")
		cancel()
		<-ended
	}, nil
}

func (l *Landscape) keepRunning(ctx context.Context, name string, current runner, newRunner func() (runner, error)) {
	pause := restartFirst
	for {
		var err error
		begin := l.cfg.Clock.Now()
		if current != nil {
			err = l.runOnce(ctx, name, current)
		}
		if ctx.Err() != nil {
			return
		}
		if l.cfg.Clock.Since(begin) > restartLast {
			pause = restartFirst
		}
		if err == nil {
			err = fmt.Errorf("it ended without an error")
		}
		klog.Background().Error(err, "A component has ended by itself; starting it again", "component", name, "after", pause)
		l.board.component(name, StateFailed, err.Error())
		select {
		case <-ctx.Done():
			return
		case <-l.cfg.Clock.After(pause):
		}
		pause = min(2*pause, restartLast)
		if current, err = newRunner(); err != nil {
			klog.Background().Error(err, "A component cannot be started", "component", name)
			continue
		}
		l.board.component(name, StateStarting, "")
	}
}

// runOnce runs a component until it ends, and has the status say when it is ready.
func (l *Landscape) runOnce(ctx context.Context, name string, current runner) error {
	var watching sync.WaitGroup
	watchCtx, stopWatching := context.WithCancel(ctx)
	if synced, ok := current.(interface{ HasSynced() bool }); ok {
		watching.Go(func() {
			if waitFor(watchCtx, name, synced.HasSynced) == nil {
				l.board.component(name, StateReady, "")
			}
		})
	}
	err := current.Run(ctx)
	stopWatching()
	watching.Wait()
	return err
}

// waitFor polls until a part of the landscape is ready.
func waitFor(ctx context.Context, what string, ready func() bool) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !ready() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
	return nil
}
