package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// moments are random, but can be repeated: GARDENLITE_KILL_SEED=N has those again that a test logged.
func moments(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if again := os.Getenv("GARDENLITE_KILL_SEED"); again != "" {
		var err error
		seed, err = strconv.ParseUint(again, 10, 64)
		must(t, err)
	}
	t.Logf("to have the same moments again: GARDENLITE_KILL_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func within(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

// victim is a landscape whose process is killed and started again.
type victim struct {
	dir    string
	cmd    *exec.Cmd
	ended  chan struct{}
	output bytes.Buffer // to be read when it has ended

	config *rest.Config
	dyn    dynamic.Interface
	// listable are all kinds that the garden can list.
	listable []schema.GroupVersionResource
}

func newVictim(t *testing.T) *victim {
	v := &victim{dir: t.TempDir()}
	t.Cleanup(func() { v.kill() })
	return v
}

// start starts the process, and waits for nothing.
func (v *victim) start(t *testing.T, seeds int, args ...string) {
	t.Helper()
	v.cmd = exec.Command(binary, append([]string{"up", "--port", "0", "--seeds", strconv.Itoa(seeds), "--data-dir", v.dir}, args...)...)
	v.output.Reset()
	v.cmd.Stdout, v.cmd.Stderr = &v.output, &v.output
	must(t, v.cmd.Start())
	ended, cmd := make(chan struct{}), v.cmd
	v.ended = ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
}

// up starts the process and waits until the landscape is ready. It returns how long that took.
func (v *victim) up(t *testing.T, seeds int) time.Duration {
	t.Helper()
	begin := time.Now()
	v.start(t, seeds)
	v.connect(t)
	return time.Since(begin)
}

// connect waits until the landscape is ready.
func (v *victim) connect(t *testing.T) {
	t.Helper()
	eventually(t, 150*time.Second, func(context.Context) error {
		select {
		case <-v.ended:
			t.Fatalf("the process has ended: %s\n%s", v.output.String(), v.log())
		default:
		}
		if r := gardenlite(t, v.dir, "status", "--wait"); r.code != 0 {
			return fmt.Errorf("%s%s\n%s", r.stdout, r.stderr, v.log())
		}
		return nil
	})
	var err error
	v.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(v.dir, "kubeconfig"))
	must(t, err)
	v.config.QPS, v.config.Timeout, v.config.WarningHandler = -1, 10*time.Second, rest.NoWarnings{}
	v.dyn, err = dynamic.NewForConfig(v.config)
	must(t, err)
	if v.listable == nil {
		v.listable = listableIn(t, v.config)
	}
}

// log is the end of the process' log.
func (v *victim) log() string {
	data, _ := os.ReadFile(filepath.Join(v.dir, "gardenlite.log"))
	lines := strings.Split(string(data), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// kill ends the process by SIGKILL.
func (v *victim) kill() {
	if v.cmd != nil {
		_ = v.cmd.Process.Kill()
		<-v.ended
	}
}

// killAfter kills the process in a while, and returns when it is dead.
func (v *victim) killAfter(delay time.Duration) {
	timer := time.AfterFunc(delay, func() { _ = v.cmd.Process.Kill() })
	defer timer.Stop()
	<-v.ended
}

// stop ends the process as Ctrl-C does.
func (v *victim) stop(t *testing.T) {
	t.Helper()
	must(t, v.cmd.Process.Signal(os.Interrupt))
	select {
	case <-v.ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("not ended 30 s after the interrupt\n%s", v.log())
	}
	if code := v.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d: %s", code, v.output.String())
	}
}

// refusals are the components that were forbidden something.
func (v *victim) refusals(t *testing.T) (refused []string) {
	t.Helper()
	var status struct {
		Components []struct {
			Name      string
			Forbidden int
		}
	}
	must(t, json.Unmarshal([]byte(gardenlite(t, v.dir, "status", "-o", "json").ok(t).stdout), &status))
	for _, c := range status.Components {
		if c.Forbidden > 0 {
			refused = append(refused, fmt.Sprintf("%s was forbidden %d requests", c.Name, c.Forbidden))
		}
	}
	return refused
}

func listableIn(t *testing.T, config *rest.Config) (kinds []schema.GroupVersionResource) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	lists, err := client.ServerPreferredResources()
	must(t, err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !isTemporary(r.Name) {
				kinds = append(kinds, gv.WithResource(r.Name))
			}
		}
	}
	return kinds
}

// isTemporary says of what a cleaner takes away when its time has come.
func isTemporary(resource string) bool {
	return resource == "events" || resource == "certificatesigningrequests" || resource == "componentstatuses"
}

// inventory is everything there is in the garden, but what is temporary: "resource.group namespace/name".
func (v *victim) inventory(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	for _, kind := range v.listable {
		list, err := v.dyn.Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.GroupResource(), err)
		}
		for _, item := range list.Items {
			all[kind.GroupResource().String()+" "+item.GetNamespace()+"/"+item.GetName()] = true
		}
	}
	return all, nil
}

// mustInventory is the inventory, of a landscape that is known to be ready.
func (v *victim) mustInventory(t *testing.T) map[string]bool {
	t.Helper()
	all, err := v.inventory(t.Context())
	must(t, err)
	return all
}

// becomes waits until there is exactly what there was.
func (v *victim) becomes(t *testing.T, before map[string]bool, when string) {
	t.Helper()
	eventually(t, 60*time.Second, func(context.Context) error {
		now, err := v.inventory(t.Context()) // so that the last error is not that the time is up
		if err != nil {
			return err
		}
		if diff := difference(before, now); diff != "" {
			return fmt.Errorf("%s: %s", when, diff)
		}
		return nil
	})
}

// difference says what is missing and what is there in addition.
func difference(want, got map[string]bool) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !got[key] {
			lines = append(lines, "missing: "+key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if !want[key] {
			lines = append(lines, "left: "+key)
		}
	}
	return strings.Join(lines, "\n")
}

// counts are how many there are of each kind.
func counts(inventory map[string]bool) map[string]int {
	n := map[string]int{}
	for key := range inventory {
		resource, _, _ := strings.Cut(key, " ")
		n[resource]++
	}
	return n
}

func (v *victim) list(ctx context.Context, group, version, resource string) ([]unstructured.Unstructured, error) {
	list, err := v.dyn.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource, err)
	}
	return list.Items, nil
}
