// Command stacks measures how long a stack takes to be installed, with the creation of a Deployment as the baseline,
// and what installed and idle stacks cost, all in one landscape.
//
//	go run ./stacks -gardenlite ../bin/gardenlite -programs ../bin -packages ../manifests/stacks
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const (
	rounds, idleStacks = 9, 100
	idle               = time.Minute
	timeout            = time.Minute
)

func main() {
	b := bench{}
	gardenlite := flag.String("gardenlite", "../bin/gardenlite", "the binary to measure")
	flag.StringVar(&b.programs, "programs", "../bin", "folder with the controllers of the sample stacks")
	flag.StringVar(&b.packages, "packages", "../manifests/stacks", "folder with the sample stacks")
	flag.Parse()
	if err := b.run(context.Background(), *gardenlite); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

type bench struct {
	programs, packages string
	landscape          *harness.Landscape
	kube               kubernetes.Interface
}

func (b *bench) run(ctx context.Context, gardenlite string) (err error) {
	if b.programs, err = filepath.Abs(b.programs); err != nil {
		return err
	}
	if b.landscape, err = harness.StartLandscape(ctx, gardenlite, "--seeds=0"); err != nil {
		return err
	}
	defer b.landscape.Stop()
	config, err := b.landscape.Config()
	if err != nil {
		return err
	}
	if b.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := b.installs(ctx); err != nil {
		return err
	}
	return b.idle(ctx)
}

// installs prints how long the installation of a stack takes.
func (b *bench) installs(ctx context.Context) error {
	var deployments, simulated, processes []time.Duration
	for range rounds {
		took, err := b.deployment(ctx)
		if err != nil {
			return err
		}
		deployments = append(deployments, took)
	}
	for range rounds {
		took, err := b.install(ctx)
		if err != nil {
			return err
		}
		simulated = append(simulated, took)
	}
	for range rounds {
		took, err := b.install(ctx, "--run", filepath.Join(b.programs, "mysql"))
		if err != nil {
			return err
		}
		processes = append(processes, took)
	}
	base := harness.Median(deployments)
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{
		{"Deployment alone, until it is available", deployments},
		{"gardenlite stack install, until the controller runs (simulated)", simulated},
		{"gardenlite stack install, until the controller runs (process)", processes},
	} {
		median := harness.Median(row.times)
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

// idle prints what idle namespace stacks cost.
func (b *bench) idle(ctx context.Context) error {
	if _, err := b.landscape.Run(ctx, "stack", "install", filepath.Join(b.packages, "mysql"), "--namespace=infra"); err != nil {
		return err
	}
	requestsBefore, err := b.requests(ctx)
	if err != nil {
		return err
	}
	memoryBefore, err := b.landscape.Memory(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i := range idleStacks {
		group.Go(func() error {
			_, err := b.landscape.Run(groupCtx, "stack", "install", filepath.Join(b.packages, "wordpress-0.1"), fmt.Sprintf("--namespace=dev-%d", i))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Printf("%-70s %9s\n", fmt.Sprintf("%d namespace stacks installed, 4 at a time", idleStacks), harness.MS(time.Since(begin)))
	requests, err := b.requests(ctx)
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

// requests returns how many requests the garden answers in an idle minute.
func (b *bench) requests(ctx context.Context) (float64, error) {
	before, err := harness.Requests(ctx, b.kube, "")
	if err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(idle):
	}
	after, err := harness.Requests(ctx, b.kube, "")
	return after - before, err
}

// deployment creates a Deployment, waits until it is available, and deletes it with its Pods.
func (b *bench) deployment(ctx context.Context) (time.Duration, error) {
	begin, deployments := time.Now(), b.kube.AppsV1().Deployments(corev1.NamespaceDefault)
	if _, err := deployments.Create(ctx, harness.Deployment(1), metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	if err := harness.Poll(ctx, timeout, func() (bool, error) {
		d, err := deployments.Get(ctx, harness.DeploymentName, metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 1, nil
	}); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if err := deployments.Delete(ctx, harness.DeploymentName, metav1.DeleteOptions{}); err != nil {
		return 0, err
	}
	return took, harness.Poll(ctx, timeout, func() (bool, error) {
		pods, err := b.kube.CoreV1().Pods(corev1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}
