// Command workloads measures how long Pods in a Shoot take to be ready and what they cost, with KWOK's own
// controller, a bare kube-apiserver and etcd as the baseline, all in one run.
//
//	go run ./workloads -gardenlite ../bin/gardenlite -baseline ../bin/baseline
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const (
	few, many = 100, 5000
	// nodes is the number of nodes of the Shoot: 250 Pods fit on each, in a range of 256 addresses.
	nodes       = 20
	podsPerNode = 250
	idle        = time.Minute
)

func main() {
	gardenlite := flag.String("gardenlite", "../bin/gardenlite", "the binary to measure")
	baseline := flag.String("baseline", "../bin/baseline", "folder with kube-apiserver, etcd and kwok")
	flag.Parse()
	if err := bench(context.Background(), *gardenlite, *baseline); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, gardenlite, baseline string) error {
	base := map[int]time.Duration{}
	for _, count := range []int{few, many} {
		took, err := kwok(ctx, baseline, count)
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		base[count] = took
		fmt.Printf("%-70s %9s %8s\n", fmt.Sprintf("KWOK and a bare kube-apiserver with etcd, %d Pods until Running", count),
			harness.MS(took), "1.00")
	}
	l, err := harness.StartLandscape(ctx, gardenlite)
	if err != nil {
		return err
	}
	defer l.Stop()
	client, err := createShoot(ctx, l)
	if err != nil {
		return err
	}
	empty, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-70s %6d MB\n", fmt.Sprintf("landscape with a Shoot of %d nodes, resident", nodes), empty/1e6)
	for _, count := range []int{few, many} {
		took, err := scale(ctx, client, count)
		if err != nil {
			return err
		}
		memory, err := l.Memory(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%-70s %9s %8.2f\n", fmt.Sprintf("Deployment of %d Pods until Ready", count), harness.MS(took),
			float64(took)/float64(base[count]))
		fmt.Printf("%-70s %6d MB more\n", "", (int64(memory)-int64(empty))/1e6)
		if count == few {
			calls, err := calls(ctx, client)
			if err != nil {
				return err
			}
			fmt.Printf("%-70s %9.2f\n", "calls about Pods, per idle Pod and minute", calls/few)
		}
	}
	fmt.Println("To be: 100 Pods at most 25 MB more and 1 call a Pod and minute, 5000 Pods within 60000 ms")
	return nil
}
