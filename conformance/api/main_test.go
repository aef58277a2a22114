// Package api sends the same requests to a garden of Gardener (etcd, kube-apiserver, gardener-apiserver and
// gardener-admission-controller, as published) and to one of gardenlite, and compares the answers.
//
//	make conformance
package api

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gardenlite/gardenlite/bench/harness"
)

// limitsFile has limits of the sizes and numbers of resources, for both gardens.
const limitsFile = "testdata/limits.yaml"

var (
	baseline = flag.String("baseline", "../../bin/baseline", "folder with Gardener's programs, etcd and kube-apiserver")

	// both are the gardens, with Gardener's first.
	both [2]*garden
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := 1
	if err := withGardens(ctx, func() { code = m.Run() }); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	if all := flag.Lookup("test.run").Value.String() == ""; all && code == 0 {
		for _, reason := range unused() {
			fmt.Fprintln(os.Stderr, "Error: no answer differs any more because:", reason)
			code = 1
		}
	}
	stop()
	os.Exit(code)
}

// withGardens calls fn while both gardens run.
func withGardens(ctx context.Context, fn func()) error {
	limits, err := filepath.Abs(limitsFile)
	if err != nil {
		return err
	}
	// Without controllers, as on Gardener's side: nothing but requests changes objects.
	landscape, err := harness.StartLandscape(ctx, "--seeds=0", "--controllers=admission-controller",
		"--resource-admission-configuration="+limits)
	if err != nil {
		return err
	}
	defer landscape.Remove()
	config, err := landscape.Config(ctx)
	if err != nil {
		return err
	}
	if both[1], err = newGarden("gardenlite", config); err != nil {
		return err
	}
	return withGardener(ctx, *baseline, limits, func(g *garden) error {
		both[0] = g
		done := make(chan struct{})
		go func() { defer close(done); fn() }()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
