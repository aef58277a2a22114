// Command stacks measures how long a stack takes to be installed, with the creation of a Deployment as the baseline,
// and what installed and idle stacks cost, all in one landscape.
//
//	go run ./stacks -gardenlite ../bin/gardenlite -programs ../bin -packages ../manifests/stacks
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
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
	kube               kubernetes.Interface
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.programs, err = filepath.Abs(b.programs); err != nil {
		return err
	}
	if b.landscape, err = harness.StartLandscape(ctx, "--seeds=0"); err != nil {
		return err
	}
	defer b.landscape.Remove()
	if b.kube, err = b.landscape.Client(ctx); err != nil {
		return err
	}
	if err := b.measureInstall(ctx); err != nil {
		return err
	}
	return b.measureIdle(ctx)
}

// measureInstall prints how long the installation of a stack takes.
func (b *bench) measureInstall(ctx context.Context) error {
	var base time.Duration
	for _, row := range []struct {
		name    string
		measure func() (time.Duration, error)
	}{
		{"Deployment alone, until it is available", func() (time.Duration, error) {
			took, err := harness.Deploy(ctx, b.kube, 1)
			return took, errors.Join(err, harness.RemoveDeployment(ctx, b.kube))
		}},
		{"gardenlite stack install, until the controller runs (simulated)", func() (time.Duration, error) { return b.install(ctx) }},
		{"gardenlite stack install, until the controller runs (process)", func() (time.Duration, error) {
			return b.install(ctx, "--run", filepath.Join(b.programs, "mysql"))
		}},
	} {
		median, err := harness.MedianOf(rounds, row.measure)
		if err != nil {
			return err
		}
		base = cmp.Or(base, median)
		fmt.Printf("%-70s %9s %8.2f\n", row.name, harness.MS(median), float64(median)/float64(base))
	}
	fmt.Println("To be: at most 2000 ms")
	return nil
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
	requestsBefore, err := harness.IdleRequests(ctx, b.kube, "")
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
	fmt.Printf("%-70s %9s\n", fmt.Sprintf("%d namespace stacks installed, 4 at a time", idleStacks), harness.MS(time.Since(begin)))
	requests, err := harness.IdleRequests(ctx, b.kube, "")
	if err != nil {
		return err
	}
	memory, err := b.landscape.Memory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-70s %9.2f MB\n", "each of them: resident", (float64(memory)-float64(memoryBefore))/1e6/idleStacks)
	fmt.Printf("%-70s %9.2f\n", "each of them: requests a minute", (requests-requestsBefore)/idleStacks)
	return nil
}
