// Command stacks measures how long a stack takes to be installed, with the creation of a Deployment as the baseline,
// and what installed and idle stacks cost, all in one landscape.
//
//	go run ./stacks -gardenlite ../bin/gardenlite -programs ../bin -packages ../manifests/stacks
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const rounds, idleStacks = 9, 100

func main() {
	b := bench{}
	flag.StringVar(&b.programs, "programs", "../bin", "folder with the controllers of the sample stacks")
	flag.StringVar(&b.packages, "packages", "../manifests/stacks", "folder with the sample stacks")
	harness.Main(b.run)
}

type bench struct {
	programs, packages string
	landscape          *harness.Landscape
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.programs, err = filepath.Abs(b.programs); err != nil {
		return err
	}
	if b.landscape, err = harness.StartLandscape(ctx, "--seeds=0"); err != nil {
		return err
	}
	defer b.landscape.Remove()
	if err := b.measureInstall(ctx); err != nil {
		return err
	}
	return b.measureIdle(ctx)
}

// measureInstall prints how long the installation of a stack takes.
func (b *bench) measureInstall(ctx context.Context) error {
	const limit = 2 * time.Second
	return harness.Measure("installing a stack", rounds,
		harness.Case{Name: "Deployment alone, until it is available", Run: func(int) (time.Duration, error) {
			took, err := harness.Deploy(ctx, b.landscape.Kube, 1)
			return took, errors.Join(err, harness.RemoveDeployment(ctx, b.landscape.Kube))
		}},
		harness.Case{Name: "gardenlite stack install, until the controller runs (simulated)", AtMost: limit,
			Run: func(int) (time.Duration, error) { return b.install(ctx) }},
		harness.Case{Name: "gardenlite stack install, until the controller runs (process)", AtMost: limit,
			Run: func(int) (time.Duration, error) { return b.install(ctx, "--run", filepath.Join(b.programs, "mysql")) }})
}

// install installs a stack as a user does, and uninstalls it.
func (b *bench) install(ctx context.Context, flags ...string) (time.Duration, error) {
	begin := time.Now()
	_, err := b.landscape.Run(ctx, append([]string{"stack", "install", filepath.Join(b.packages, "mysql"), "--namespace=infra"}, flags...)...)
	took := time.Since(begin)
	if err == nil {
		_, err = b.landscape.Run(ctx, "stack", "uninstall", "mysql", "--namespace=infra")
	}
	return took, err
}

// measureIdle prints what idle namespace stacks cost.
func (b *bench) measureIdle(ctx context.Context) error {
	if _, err := b.landscape.Run(ctx, "stack", "install", filepath.Join(b.packages, "mysql"), "--namespace=infra"); err != nil {
		return err
	}
	requestsBefore, err := harness.IdleRequests(ctx, b.landscape.Kube)
	if err != nil {
		return err
	}
	memoryBefore, err := b.landscape.Memory(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := harness.InParallel(ctx, 4, idleStacks, func(ctx context.Context, i int) error {
		_, err := b.landscape.Run(ctx, "stack", "install", filepath.Join(b.packages, "wordpress-0.1"), fmt.Sprintf("--namespace=dev-%d", i))
		return err
	}); err != nil {
		return err
	}
	harness.Row(fmt.Sprintf("%d namespace stacks installed, 4 at a time", idleStacks), harness.MS(time.Since(begin)))
	requests, err := harness.IdleRequests(ctx, b.landscape.Kube)
	if err != nil {
		return err
	}
	memory, err := b.landscape.Memory(ctx)
	if err != nil {
		return err
	}
	harness.Row("each of them: resident", harness.MB((memory-memoryBefore)/idleStacks))
	harness.Row("each of them: requests a minute", fmt.Sprintf("%.2f", (requests-requestsBefore)/idleStacks))
	return nil
}
