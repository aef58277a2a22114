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
	var base, cold, warm, stop []time.Duration
	var last sample
	for i := range runs {
		took, err := measureBaseline(ctx, baseline)
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		base = append(base, took)
		dir, err := os.MkdirTemp("", "bench-up-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		first, err := measureUp(ctx, gardenlite, dir)
		if err != nil {
			return fmt.Errorf("cold start: %w", err)
		}
		second, err := measureUp(ctx, gardenlite, dir)
		if err != nil {
			return fmt.Errorf("warm restart: %w", err)
		}
		cold, warm, stop = append(cold, first.ready), append(warm, second.ready), append(stop, first.stop, second.stop)
		last = first
		fmt.Printf("run %d: kube-apiserver with etcd %s, cold %s, warm %s\n", i+1, ms(took), ms(first.ready), ms(second.ready))
	}
	b, c, w := median(base), median(cold), median(warm)
	fmt.Printf("\n%-44s %9s %8s\n", fmt.Sprintf("median of %d", runs), "", "ratio")
	fmt.Printf("%-44s %9s %8s\n", "kube-apiserver with etcd, until /readyz", ms(b), "1.00")
	fmt.Printf("%-44s %9s %8.2f  (to be at most 1.20)\n", "gardenlite up, cold, until all can be listed", ms(c), float64(c)/float64(b))
	fmt.Printf("%-44s %9s %8.2f  (of cold; to be at most 0.80)\n", "gardenlite up, warm restart", ms(w), float64(w)/float64(c))
	fmt.Printf("%-44s %9s\n", "stop", ms(median(stop)))
	fmt.Printf("\nlast cold start: %d MiB resident, %d MiB live heap, %d goroutines\n",
		last.status.Memory.Resident>>20, last.status.Memory.LiveHeap>>20, last.status.Goroutines)
	for _, phase := range last.status.Phases {
		fmt.Printf("  %-40s %9s\n", phase.Name, ms(phase.Took))
	}
	return nil
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

// measureUp starts a landscape, and returns when it is ready and every resource of the Gardener API can be listed.
func measureUp(ctx context.Context, binary, dir string) (s sample, err error) {
	begin := time.Now()
	up, err := start(dir, binary, "up", "--seeds=0", "--port=0", "--name=bench", "--data-dir="+dir)
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
		return garden != nil && garden.listAll(), nil
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
