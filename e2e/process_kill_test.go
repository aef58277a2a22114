package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// killed kills a landscape with eleven Pods that are processes, in a Shoot, in a seed and in the garden, at random moments.
// After each start all Pods run again with one process each, one with a daemon, and the files that they had, and the process
// that listens has its port again. No process is left after down, and none after Ctrl-C.
func (p *programs) killed(t *testing.T, inSeed, inGarden *programs) {
	if runtime.GOOS != "linux" {
		t.Skip("the process table is read from /proc")
	}
	const replicas, stubbornGrace = 4, 3
	kills := 2
	if testutil.Soaking() {
		kills = 20
	}
	l := p.l
	inGarden.deploy(t, "one", 1, nil)
	inSeed.deploy(t, "many", replicas, nil)
	port := testutil.UnusedPort(t)
	inSeed.deploy(t, "listens", 1, func(spec *corev1.PodSpec) {
		spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)},
		}}
	}, fmt.Sprintf("--health=%d", port))
	p.deploy(t, "many", replicas, nil)
	p.deploy(t, "stubborn", 1, func(spec *corev1.PodSpec) {
		spec.TerminationGracePeriodSeconds = ptr.To[int64](stubbornGrace)
	}, "--stubborn", "--daemon")
	var files []string
	for _, cluster := range []*programs{p, inSeed, inGarden} {
		pods, err := cluster.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, pod := range pods.Items {
			if !strings.HasPrefix(pod.Status.ContainerStatuses[0].ContainerID, "process://") {
				continue
			}
			file := filepath.Join(l.dir, "processes", "pods", string(pod.UID), "written-by-the-test")
			must(t, os.WriteFile(file, nil, 0o600))
			files = append(files, file)
		}
	}
	up := func(before map[int]string) {
		l.up(t)
		inSeed.client, inGarden.client = l.seeds["local"], l.kube
		l.runsOnce(t, before, 2*replicas+3, 1, p, inSeed, inGarden)
		for _, file := range files {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("a Pod has lost a file: %v", err)
			}
		}
	}
	random := killMoments(t)
	for range kills {
		before := processesOf(t, l.dir)
		l.killAfter(within(random, time.Second))
		l.start(t)
		l.killAfter(within(random, 8*time.Second)) // also while it starts, and ends what was left behind
		for pid, started := range processesOf(t, l.dir) {
			before[pid] = started
		}
		up(before)
	}
	ends := func(how string, end func()) (before map[int]string) {
		begin := time.Now()
		before = processesOf(t, l.dir)
		end()
		if left := processesOf(t, l.dir); len(left) > 0 {
			t.Errorf("after %s, of the processes %v there are %v", how, before, left)
		}
		// A stubborn process is killed after its grace period, and not only when the landscape stops waiting.
		if took := time.Since(begin); took > 25*time.Second {
			t.Errorf("%s took %s, with a grace period of %d s", how, took, stubbornGrace)
		}
		return before
	}
	up(ends("down", func() { gardenlite(t, l.dir, "down").OK(t) }))
	ends("Ctrl-C", func() { l.stop(t) })
}

// runsOnce waits until there are as many processes and daemons as wanted, none of them from before, and each process belongs
// to a ready Pod.
func (l *landscape) runsOnce(t *testing.T, before map[int]string, wanted, daemons int, clusters ...*programs) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		now := processesOf(t, l.dir)
		for pid, started := range before {
			if now[pid] == started {
				return fmt.Errorf("process %d has outlived the landscape", pid)
			}
		}
		ready := 0
		for _, p := range clusters {
			pods, err := p.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, pod := range pods.Items {
				if len(pod.Status.ContainerStatuses) != 1 {
					continue
				}
				s := pod.Status.ContainerStatuses[0]
				pid, _ := strconv.Atoi(strings.TrimPrefix(s.ContainerID, "process://"))
				if s.Ready && s.RestartCount > 0 && now[pid] != "" {
					ready++
				}
			}
		}
		if len(now) != wanted+daemons || ready != wanted {
			return fmt.Errorf("there are %d processes, not %d, and %d Pods that are ready again, not %d", len(now), wanted+daemons, ready, wanted)
		}
		return nil
	})
}

// processesOf returns the processes of this machine whose HOME is in a landscape's folder, with their start times.
func processesOf(t *testing.T, dir string) map[int]string {
	t.Helper()
	all := map[int]string{}
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	must(t, err)
	for _, path := range environments {
		folder := filepath.Dir(path)
		environment, _ := os.ReadFile(path) // one that has ended has none
		stat, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil || !bytes.Contains(environment, []byte("\x00HOME="+dir+"/")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		must(t, err)
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		all[pid] = string(fields[19]) // its start, see proc(5)
	}
	return all
}
