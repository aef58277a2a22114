// Command snapshot measures how long a landscape of 20 Shoots takes to be saved and to be restored, beside a warm start and a copy of
// the folder of a landscape that is stopped, and how long a client waits that writes all the time.
//
//	go run ./snapshot -gardenlite ../bin/gardenlite
package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const shoots, saves, starts = 20, 9, 3

func main() { harness.Main(run) }

func run(ctx context.Context) error {
	l, err := harness.StartLandscape(ctx)
	if err != nil {
		return err
	}
	defer l.Remove()
	if err := harness.InParallel(ctx, 4, shoots, func(ctx context.Context, i int) error {
		return l.CreateShoot(ctx, fmt.Sprintf("s%d", i), 1, nil)
	}); err != nil {
		return err
	}
	if err := l.AwaitShoots(ctx, shoots); err != nil {
		return err
	}
	if err := measureSave(ctx, l); err != nil {
		return err
	}
	return measureRestore(ctx, l)
}

// measureSave saves the landscape while a client writes all the time.
func measureSave(ctx context.Context, l *harness.Landscape) error {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var longest atomic.Int64
	ended := make(chan error, 1)
	go func() { ended <- write(writing, l, &longest) }()
	var without, with []time.Duration
	number := 0
	if err := harness.Measure(fmt.Sprintf("saving %d Shoots with a node each", shoots), saves,
		harness.Case{Name: "one second without a save", Run: harness.Timed(func(int) error {
			longest.Store(0)
			err := harness.Pause(ctx, time.Second)
			without = append(without, time.Duration(longest.Load()))
			return err
		})},
		harness.Case{Name: "gardenlite snapshot save", AtMost: time.Second, Run: harness.Timed(func(int) error {
			longest.Store(0)
			number++
			_, err := l.Run(ctx, "snapshot", "save", fmt.Sprintf("s%d", number))
			with = append(with, time.Duration(longest.Load()))
			return err
		})},
	); err != nil {
		return err
	}
	stop()
	if err := <-ended; err != nil {
		return err
	}
	harness.Row("longest write in a second without a save, median", harness.MS(harness.Median(without)))
	harness.Row("longest write during a save, median", harness.MS(harness.Median(with)),
		harness.Limit(harness.Median(with) <= 100*time.Millisecond, "at most 100 ms"))
	return nil
}

// write updates a ConfigMap all the time, and keeps how long the longest write took.
func write(ctx context.Context, l *harness.Landscape, longest *atomic.Int64) error {
	configMaps := l.Kube.CoreV1().ConfigMaps(harness.Namespace)
	written, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "written"}}, metav1.CreateOptions{})
	for i := 0; err == nil; i++ {
		written.Data = map[string]string{"n": fmt.Sprint(i)}
		begin := time.Now()
		written, err = configMaps.Update(ctx, written, metav1.UpdateOptions{})
		if took := int64(time.Since(begin)); took > longest.Load() {
			longest.Store(took)
		}
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was stopped
	}
	return err
}

// measureRestore starts the landscape as it was, and after a restore.
func measureRestore(ctx context.Context, l *harness.Landscape) error {
	start := func(ctx context.Context) error {
		if err := l.Start(ctx); err != nil {
			return err
		}
		return l.AwaitShoots(ctx, shoots)
	}
	stopped := func(do func() error) func(int) (time.Duration, error) {
		return func(int) (time.Duration, error) {
			l.Process.End()
			begin := time.Now()
			err := do()
			return time.Since(begin), err
		}
	}
	copies := 0
	return harness.Measure(fmt.Sprintf("starting %d Shoots with a node each, until all are ready", shoots), starts,
		harness.Case{Name: "warm start", Run: stopped(func() error { return start(ctx) })},
		harness.Case{Name: "gardenlite snapshot restore, and start", Run: stopped(func() error {
			if _, err := l.Run(ctx, "snapshot", "restore", "s1", "--yes"); err != nil {
				return err
			}
			return start(ctx)
		})},
		harness.Case{Name: "copy of the folder of the stopped landscape", Run: stopped(func() error {
			copies++
			return exec.CommandContext(ctx, "cp", "-a", filepath.Join(l.Dir, "data"), filepath.Join(l.Dir, fmt.Sprintf("copy-%d", copies))).Run()
		})},
		harness.Case{Name: "(warm start, for the next turn)", Run: stopped(func() error { return start(ctx) })},
	)
}
