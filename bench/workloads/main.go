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

	"github.com/gardenlite/gardenlite/bench/harness"
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
var sizes = []size{{few, 3, 0}, {5000, 1, time.Minute}}

type size struct {
	pods   int32
	rounds int
	atMost time.Duration
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
	l, client, err := startWithShoot(ctx)
	if err != nil {
		return err
	}
	defer l.Remove()
	empty, err := l.Memory(ctx)
	if err != nil {
		return err
	}
	harness.Row(fmt.Sprintf("landscape with a Shoot of %d nodes, resident", nodes), harness.MB(empty))
	for _, size := range sizes {
		memory := 0.0 // of the first round, since memory that was freed stays resident for a while
		err := harness.Measure(fmt.Sprintf("%d Pods", size.pods), size.rounds,
			harness.Case{Name: "KWOK and a bare kube-apiserver with etcd, until Running",
				Run: func(int) (time.Duration, error) { return kwok(ctx, baseline, size.pods) }},
			harness.Case{Name: "Deployment until Ready", AtMost: size.atMost, Run: func(int) (time.Duration, error) {
				if err := harness.RemoveDeployment(ctx, client); err != nil {
					return 0, err
				}
				took, err := harness.Deploy(ctx, client, size.pods)
				if err == nil && memory == 0 {
					memory, err = l.Memory(ctx)
				}
				return took, err
			}})
		if err != nil {
			return err
		}
		if size.pods != few {
			harness.Row("resident, more", harness.MB(memory-empty))
			continue
		}
		harness.Row("resident, more", harness.MB(memory-empty), harness.Limit(memory-empty <= 25e6, "at most 25 MB"))
		requests, err := harness.IdleRequests(ctx, client, `resource="pods"`)
		if err != nil {
			return err
		}
		harness.Row("calls about Pods, per idle Pod and minute", fmt.Sprintf("%.2f", requests/few),
			harness.Limit(requests <= few, "at most 1"))
	}
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
	fmt.Println()
	harness.Row(fmt.Sprintf("Deployment of %d processes until Ready", processes), harness.MS(took))
	harness.Row("each of them: resident", harness.MB((after-before)/processes))
	return nil
}
