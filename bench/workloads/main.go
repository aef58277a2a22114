// Command workloads measures how long Pods in a Shoot take to be ready and what they cost, with KWOK's own
// controller, a bare kube-apiserver and etcd as the baseline, all in one run.
//
//	go run ./workloads -gardenlite ../bin/gardenlite -baseline ../bin/baseline
package main

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"time"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const (
	few = 100
	// nodes is the number of nodes of the Shoot: 250 Pods fit on each, in a range of 256 addresses.
	nodes       = 20
	podsPerNode = 250
	// processes is the number of Pods whose container is a process.
	processes = 20
)

// sizes are the numbers of Pods that are measured. Few Pods take so short a time that the median of several rounds is
// printed.
var sizes = []size{{few, 3}, {5000, 1}}

type size struct {
	pods   int32
	rounds int
}

func (s size) String() string {
	if s.rounds == 1 {
		return fmt.Sprintf("%d Pods", s.pods)
	}
	return fmt.Sprintf("%d Pods (median of %d rounds)", s.pods, s.rounds)
}

func main() {
	baseline := flag.String("baseline", "../bin/baseline", "folder with kube-apiserver, etcd and kwok")
	harness.Main(func(ctx context.Context) error {
		if err := bench(ctx, *baseline); err != nil {
			return err
		}
		return benchProcesses(ctx)
	})
}

func bench(ctx context.Context, baseline string) error {
	base := map[int32]time.Duration{}
	for _, size := range sizes {
		took, err := harness.MedianOf(size.rounds, func() (time.Duration, error) { return kwok(ctx, baseline, size.pods) })
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		base[size.pods] = took
		fmt.Printf("%-70s %9s %8s\n", fmt.Sprintf("KWOK and a bare kube-apiserver with etcd, %s until Running", size),
			harness.MS(took), "1.00")
	}
	l, client, err := startWithShoot(ctx)
	if err != nil {
		return err
	}
	defer l.Remove()
	empty, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-70s %6d MB\n", fmt.Sprintf("landscape with a Shoot of %d nodes, resident", nodes), empty/1e6)
	for _, size := range sizes {
		var memory uint64 // of the first round, since memory that was freed stays resident for a while
		took, err := harness.MedianOf(size.rounds, func() (time.Duration, error) {
			if err := harness.RemoveDeployment(ctx, client); err != nil {
				return 0, err
			}
			took, err := harness.Deploy(ctx, client, size.pods)
			if err == nil && memory == 0 {
				memory, err = l.Memory(ctx)
			}
			return took, err
		})
		if err != nil {
			return err
		}
		fmt.Printf("%-70s %9s %8.2f\n", fmt.Sprintf("Deployment of %s until Ready", size), harness.MS(took),
			float64(took)/float64(base[size.pods]))
		fmt.Printf("%-70s %6d MB more\n", "", (int64(memory)-int64(empty))/1e6)
		if size.pods == few {
			requests, err := harness.IdleRequests(ctx, client, "pods")
			if err != nil {
				return err
			}
			fmt.Printf("%-70s %9.2f\n", "calls about Pods, per idle Pod and minute", requests/few)
		}
	}
	fmt.Println("To be: 100 Pods at most 25 MB more and 1 call a Pod and minute, 5000 Pods within 60000 ms")
	return nil
}

// benchProcesses measures Pods whose container is a process. The memory is that of the landscape without the processes, and
// before them there is a simulated Pod, so that what runs Pods at all does not count.
func benchProcesses(ctx context.Context) error {
	l, client, err := startWithShoot(ctx)
	if err != nil {
		return err
	}
	defer l.Remove()
	if _, err := harness.Deploy(ctx, client, 1); err != nil {
		return err
	}
	before, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	program, err := exec.LookPath("sleep")
	if err != nil {
		return err
	}
	if _, err := l.Run(ctx, "image", "run", harness.DeploymentImage, program); err != nil {
		return err
	}
	if err := harness.RemoveDeployment(ctx, client); err != nil {
		return err
	}
	took, err := harness.Deploy(ctx, client, processes)
	if err != nil {
		return err
	}
	after, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-70s %9s\n", fmt.Sprintf("Deployment of %d processes until Ready", processes), harness.MS(took))
	fmt.Printf("%-70s %6d kB more each\n", "", (int64(after)-int64(before))/processes/1e3)
	return nil
}
