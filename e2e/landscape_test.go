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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// landscape is a landscape with seeds. It is the one that the tests of the package share, or a test's own, in a
// process that the test can stop, kill and start again.
type landscape struct {
	dir   string
	names []string // of its seeds

	admin *rest.Config // of the garden
	kube  kubernetes.Interface
	dyn   dynamic.Interface
	seeds map[string]kubernetes.Interface
	// listable are all kinds that the garden can list.
	listable []schema.GroupVersionResource

	cmd    *exec.Cmd
	ended  chan struct{}
	output bytes.Buffer // to be read when the process has ended
}

// sharedLandscape returns the landscape that the tests of the package share.
func sharedLandscape(t *testing.T) *landscape {
	t.Helper()
	l := &landscape{dir: suite.DataDir(), names: sharedSeeds}
	l.connect(t)
	return l
}

// newLandscape starts a landscape with the flags given, and waits until it is ready. Its process ends with the test.
func newLandscape(t *testing.T, flags ...string) *landscape {
	t.Helper()
	l := stoppedLandscape(t)
	l.up(t, flags...)
	return l
}

// stoppedLandscape returns a landscape that has not been started yet.
func stoppedLandscape(t *testing.T) *landscape {
	t.Helper()
	l := &landscape{dir: filepath.Join(t.TempDir(), "landscape"), names: []string{"local"}}
	t.Cleanup(func() {
		l.kill()
		if t.Failed() {
			t.Log(l.crash())
		}
	})
	t.Cleanup(func() {
		if l.isRunning() && !t.Failed() {
			l.expectNothingForbidden(t)
		}
	})
	return l
}

// up starts the process and waits until the landscape is ready.
func (l *landscape) up(t *testing.T, flags ...string) {
	t.Helper()
	l.start(t, flags...)
	l.connect(t)
}

// start starts the process, and does not wait. Without the flag --seeds the landscape has as many seeds as before.
func (l *landscape) start(t *testing.T, flags ...string) {
	t.Helper()
	if at := slices.Index(flags, "--seeds"); at >= 0 {
		count, err := strconv.Atoi(flags[at+1])
		must(t, err)
		l.names = []string{"local", "local-2"}[:count]
	} else {
		own := slices.DeleteFunc(slices.Clone(l.names), func(name string) bool { return !strings.HasPrefix(name, "local") })
		flags = append([]string{"--seeds", strconv.Itoa(len(own))}, flags...)
	}
	flags = append([]string{"up", "--port", "0", "--data-dir", l.dir, "--ready-timeout", waitTimeout.String()}, flags...)
	l.cmd = exec.Command(binary, flags...)
	l.output.Reset()
	l.cmd.Stdout, l.cmd.Stderr = &l.output, &l.output
	must(t, l.cmd.Start())
	ended, cmd := make(chan struct{}), l.cmd
	l.ended = ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
}

// connect waits until the landscape is ready, and makes clients: the ports of the seeds change from start to start.
func (l *landscape) connect(t *testing.T) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		select {
		case <-l.ended:
			t.Fatalf("the process has ended: %s\n%s", l.output.String(), l.log())
		default:
		}
		if r := gardenlite(t, l.dir, "status", "--wait"); r.Code != 0 {
			return fmt.Errorf("%s%s\n%s", r.Stdout, r.Stderr, l.log())
		}
		return nil
	})
	var err error
	l.admin, err = clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, "kubeconfig"))
	must(t, err)
	l.admin.QPS, l.admin.Timeout, l.admin.WarningHandler = -1, 30*time.Second, rest.NoWarnings{}
	l.kube = clientOf(t, l.admin)
	l.dyn, err = dynamic.NewForConfig(l.admin)
	must(t, err)
	l.seeds = map[string]kubernetes.Interface{}
	for _, name := range l.names {
		l.seeds[name] = seedAdmin(t, l.dir, name)
	}
}

// isRunning reports whether the process runs.
func (l *landscape) isRunning() bool {
	if l.cmd == nil {
		return false
	}
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

// kill ends the process by SIGKILL.
func (l *landscape) kill() {
	if l.cmd != nil {
		_ = l.cmd.Process.Kill()
		<-l.ended
	}
}

// killAfter kills the process after a delay, and returns when it has ended.
func (l *landscape) killAfter(delay time.Duration) {
	timer := time.AfterFunc(delay, func() { _ = l.cmd.Process.Kill() })
	defer timer.Stop()
	<-l.ended
}

// stop ends the process as Ctrl-C does.
func (l *landscape) stop(t *testing.T) {
	t.Helper()
	must(t, l.cmd.Process.Signal(os.Interrupt))
	select {
	case <-l.ended:
	case <-time.After(waitTimeout):
		t.Fatalf("the process has not ended %s after the interrupt\n%s", waitTimeout, l.log())
	}
	if code := l.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d: %s", code, l.output.String())
	}
}

// log returns the end of the process's log.
func (l *landscape) log() string { return suite.EndOfLog(l.dir) }

// crash returns what the log and the output say about a crash of the process.
func (l *landscape) crash() string {
	log, err := os.ReadFile(filepath.Join(l.dir, "gardenlite.log"))
	if err != nil {
		return err.Error()
	}
	log = append(log, l.output.Bytes()...)
	for _, sign := range []string{"panic: ", "fatal error: ", "PostStartHook"} {
		if at := bytes.Index(log, []byte(sign)); at >= 0 {
			return string(log[max(at-200, 0):min(at+4000, len(log))])
		}
	}
	return "the landscape did not crash; the end of its log:\n" + l.log()
}

// componentState is the state of a component in the status.
type componentState struct {
	Name, State, Message string
	Forbidden            int
}

func componentsOf(t *testing.T, dir string) []componentState {
	t.Helper()
	var status struct{ Components []componentState }
	must(t, json.Unmarshal([]byte(gardenlite(t, dir, "status", "-o", "json").OK(t).Stdout), &status))
	return status.Components
}

// expectNothingForbidden expects that no request of a component was forbidden since the process started. It is called for
// each landscape that still runs when its test ends.
func (l *landscape) expectNothingForbidden(t *testing.T) {
	t.Helper()
	forbidden, err := suite.Forbidden(l.dir)
	must(t, err)
	if len(forbidden) > 0 {
		t.Errorf("requests of components were forbidden, %v:\n%s", forbidden,
			strings.Join(l.logged(t, 0, "forbidden something", "is forbidden"), "\n"))
	}
}

// killMoments returns the random numbers for the moments of kills.
func killMoments(t *testing.T) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(testutil.Seed(t), 0))
}

func within(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
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

// isTemporary reports whether objects of a resource are deleted after some time.
func isTemporary(resource string) bool {
	return resource == "events" || resource == "certificatesigningrequests" || resource == "componentstatuses"
}

// inventory returns all objects of the garden, except temporary ones, as "resource.group namespace/name".
func (l *landscape) inventory(ctx context.Context) (map[string]bool, error) {
	return inventory(ctx, l.dyn, l.listable)
}

func inventory(ctx context.Context, client dynamic.Interface, kinds []schema.GroupVersionResource) (map[string]bool, error) {
	all := map[string]bool{}
	for _, kind := range kinds {
		list, err := client.Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.GroupResource(), err)
		}
		for _, item := range list.Items {
			all[kind.GroupResource().String()+" "+item.GetNamespace()+"/"+item.GetName()] = true
		}
	}
	delete(all, "configmaps garden/deleted-seeds") // it lists refused certificates, and stays
	return all, nil
}

// mustInventory returns the inventory of a landscape that is known to be ready.
func (l *landscape) mustInventory(t *testing.T) map[string]bool {
	t.Helper()
	if l.listable == nil {
		l.listable = listableIn(t, l.admin)
	}
	for _, seed := range l.names {
		if !strings.HasPrefix(seed, "local") {
			continue // a managed seed, which has no such Secret
		}
		eventually(t, waitTimeout, func(ctx context.Context) error {
			_, err := l.kube.CoreV1().Secrets("garden").Get(ctx, seed+".login", metav1.GetOptions{})
			return err
		})
	}
	var all map[string]bool
	eventually(t, waitTimeout, func(ctx context.Context) (err error) {
		all, err = l.inventory(ctx)
		for key := range all { // Kubernetes makes these for each namespace, at any time
			if name, ok := strings.CutPrefix(key, "namespaces /"); ok && err == nil &&
				(!all["serviceaccounts "+name+"/default"] || !all["configmaps "+name+"/kube-root-ca.crt"]) {
				err = fmt.Errorf("the namespace %s is not complete", name)
			}
		}
		return err
	})
	return all
}

// becomes waits until there are exactly the objects of before.
func (l *landscape) becomes(t *testing.T, before map[string]bool, when string) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		now, err := l.inventory(t.Context()) // so that the last error is not the timeout
		if err != nil {
			return err
		}
		if diff := difference(before, now); diff != "" {
			return fmt.Errorf("%s: %s", when, diff)
		}
		return nil
	})
}

// difference lists the missing and the additional objects.
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

// counts returns the number of objects of each resource.
func counts(inventory map[string]bool) map[string]int {
	n := map[string]int{}
	for key := range inventory {
		resource, _, _ := strings.Cut(key, " ")
		n[resource]++
	}
	return n
}

func (l *landscape) list(ctx context.Context, group, version, resource string) ([]unstructured.Unstructured, error) {
	list, err := l.dyn.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).List(
		ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource, err)
	}
	return list.Items, nil
}
