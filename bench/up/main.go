// Command up measures how long a landscape takes to start, cold and warm, beside a bare kube-apiserver with etcd in the
// same run, and prints the ratio.
//
//	go run ./up -gardenlite ../bin/gardenlite -baseline ../bin/baseline -runs 5
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	gardenlite := flag.String("gardenlite", "../bin/gardenlite", "the binary to measure")
	baseline := flag.String("baseline", "../bin/baseline", "folder with kube-apiserver and etcd")
	runs := flag.Int("runs", 5, "how many of each; medians are printed")
	flag.Parse()
	if err := bench(*gardenlite, *baseline, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func bench(gardenlite, baseline string, runs int) error {
	ctx := context.Background()
	var base, cold, warm, stop, seeded, seededWarm []time.Duration
	var last, lastSeeded sample
	for i := range runs {
		took, err := measureBaseline(ctx, baseline)
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		base = append(base, took)
		first, second, err := measureTwice(ctx, gardenlite, 0)
		if err != nil {
			return err
		}
		cold, warm, stop = append(cold, first.ready), append(warm, second.ready), append(stop, first.stop, second.stop)
		last = first
		seedFirst, seedSecond, err := measureTwice(ctx, gardenlite, 1)
		if err != nil {
			return fmt.Errorf("with a seed: %w", err)
		}
		seeded, seededWarm = append(seeded, seedFirst.ready), append(seededWarm, seedSecond.ready)
		lastSeeded = seedFirst
		fmt.Printf("run %d: kube-apiserver with etcd %s, cold %s, warm %s, with a seed cold %s, warm %s\n",
			i+1, ms(took), ms(first.ready), ms(second.ready), ms(seedFirst.ready), ms(seedSecond.ready))
	}
	b, c, w, with := median(base), median(cold), median(warm), median(seeded)
	fmt.Printf("\n%-52s %9s %8s\n", fmt.Sprintf("median of %d", runs), "", "ratio")
	fmt.Printf("%-52s %9s %8s\n", "kube-apiserver with etcd, until /readyz", ms(b), "1.00")
	fmt.Printf("%-52s %9s %8.2f  (to be at most 1.20)\n", "gardenlite up --seeds 0, cold, until all can be listed", ms(c), float64(c)/float64(b))
	fmt.Printf("%-52s %9s %8.2f  (of cold; to be at most 0.80)\n", "gardenlite up --seeds 0, warm restart", ms(w), float64(w)/float64(c))
	fmt.Printf("%-52s %9s %8.2f  (to be at most 1.50)\n", "gardenlite up, cold, until its Seed is ready", ms(with), float64(with)/float64(b))
	fmt.Printf("%-52s %9s %8.2f\n", "gardenlite up, warm restart", ms(median(seededWarm)), float64(median(seededWarm))/float64(b))
	fmt.Printf("%-52s %9s\n", "stop (--seeds 0)", ms(median(stop)))
	report("--seeds 0", last)
	report("with one seed (to be at most 450 MB resident)", lastSeeded)
	return nil
}

func report(what string, s sample) {
	fmt.Printf("\nlast cold start %s: %d MB resident, %d MB live heap, %d goroutines\n",
		what, s.status.Memory.Resident/1e6, s.status.Memory.LiveHeap/1e6, s.status.Goroutines)
	for _, phase := range s.status.Phases {
		fmt.Printf("  %-44s %9s\n", phase.Name, ms(phase.Took))
	}
}

// measureTwice starts a landscape that is new, and then again.
func measureTwice(ctx context.Context, binary string, seeds int) (first, second sample, err error) {
	dir, err := os.MkdirTemp("", "bench-up-")
	if err != nil {
		return first, second, err
	}
	defer os.RemoveAll(dir)
	if first, err = measureUp(ctx, binary, dir, seeds); err != nil {
		return first, second, fmt.Errorf("cold start: %w", err)
	}
	if second, err = measureUp(ctx, binary, dir, seeds); err != nil {
		return first, second, fmt.Errorf("warm restart: %w", err)
	}
	return first, second, nil
}

// measureBaseline starts etcd and kube-apiserver side by side, as they come, and returns when /readyz is ok.
func measureBaseline(ctx context.Context, folder string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "bench-baseline-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	files, err := writeCredentials(dir) // not part of the time: gardenlite's own are
	if err != nil {
		return 0, err
	}
	client, peer, secure := freePort(), freePort(), freePort()
	begin := time.Now()
	etcd, err := start(dir, filepath.Join(folder, "etcd"),
		"--data-dir="+filepath.Join(dir, "etcd"), "--log-level=error",
		"--listen-client-urls="+httpURL(client), "--advertise-client-urls="+httpURL(client),
		"--listen-peer-urls="+httpURL(peer), "--initial-advertise-peer-urls="+httpURL(peer),
		"--initial-cluster=default="+httpURL(peer))
	if err != nil {
		return 0, err
	}
	defer etcd.end()
	apiserver, err := start(dir, filepath.Join(folder, "kube-apiserver"),
		"--etcd-servers="+httpURL(client), "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", secure), "--cert-dir="+dir, "--tls-cert-file="+files.cert, "--tls-private-key-file="+files.key,
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC,Node",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+files.key,
		"--service-account-signing-key-file="+files.key, "--token-auth-file="+files.tokens)
	if err != nil {
		return 0, err
	}
	defer apiserver.end()
	err = poll(ctx, time.Minute, func() (bool, error) {
		if apiserver.ended() {
			return false, fmt.Errorf("kube-apiserver ended: %s", apiserver.log())
		}
		return get(files.client, fmt.Sprintf("https://127.0.0.1:%d/readyz", secure), files.token) == nil, nil
	})
	return time.Since(begin), err
}

type sample struct {
	ready, stop time.Duration
	status      status
}

// measureUp starts a landscape, and returns when it is ready and every resource of the Gardener API can be listed, and with
// a seed when that is ready.
func measureUp(ctx context.Context, binary, dir string, seeds int) (s sample, err error) {
	begin := time.Now()
	up, err := start(dir, binary, "up", fmt.Sprintf("--seeds=%d", seeds), "--port=0", "--name=bench", "--data-dir="+dir)
	if err != nil {
		return s, err
	}
	defer up.end()
	var garden *gardenClient
	err = poll(ctx, time.Minute, func() (bool, error) {
		if up.ended() {
			return false, fmt.Errorf("gardenlite ended: %s", up.log())
		}
		if garden == nil {
			garden = openGarden(dir, up.pid())
		}
		return garden != nil && (seeds == 0 || garden.seedReady("local")) && garden.listAll(), nil
	})
	if err != nil {
		return s, err
	}
	s.ready = time.Since(begin)
	out, err := exec.CommandContext(ctx, binary, "status", "--wait", "--collect-garbage", "--name=bench", "--data-dir="+dir, "-o=json").Output()
	if err != nil {
		return s, fmt.Errorf("gardenlite status: %w", err)
	}
	if err := s.status.parse(out); err != nil {
		return s, err
	}
	begin = time.Now()
	up.end()
	s.stop = time.Since(begin)
	return s, nil
}

func median(values []time.Duration) time.Duration {
	values = slices.Clone(values)
	slices.Sort(values)
	return values[len(values)/2]
}

func ms(d time.Duration) string { return strings.TrimSpace(fmt.Sprintf("%d ms", d.Milliseconds())) }
