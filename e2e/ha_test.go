package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
)

// takeover is within what time another process does what a killed one did.
const takeover = 15 * time.Second

// member is one of several processes that are one landscape.
type member struct {
	dir     string
	process *exec.Cmd
	config  *rest.Config
	kube    kubernetes.Interface
	dyn     dynamic.Interface
}

func startMember(t *testing.T, dir, datastore string) *member {
	t.Helper()
	m := &member{dir: dir, process: exec.Command(binary, "up", "--port", "0", "--name", "ha", "--data-dir", dir, "--datastore", datastore)}
	output := &bytes.Buffer{}
	m.process.Stderr = output
	must(t, m.process.Start())
	t.Cleanup(func() {
		_ = m.process.Process.Kill()
		_ = m.process.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", dir, output)
		}
	})
	eventually(t, waitTimeout, func(context.Context) error {
		if r := run1(t, dir, "status", "--wait"); r.Code != 0 {
			return fmt.Errorf("%s", r.Stderr)
		}
		return nil
	})
	var err error
	m.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	must(t, err)
	m.config.QPS, m.config.Timeout = -1, 10*time.Second
	m.kube, m.dyn = kubernetes.NewForConfigOrDie(m.config), dynamic.NewForConfigOrDie(m.config)
	return m
}

func run1(t *testing.T, dir string, args ...string) result {
	t.Helper()
	return gardenlite(t, dir, append(args, "--name", "ha")...)
}

// kill ends the process as a power failure would.
func (m *member) kill(t *testing.T) {
	t.Helper()
	must(t, m.process.Process.Kill())
	_ = m.process.Wait()
}

// TestTwoProcesses runs one landscape by two processes on one datastore. Either may be killed: the other one goes on with
// what only one does at a time, within 15 s.
func TestTwoProcesses(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{"etcd": datastoretest.StartEtcd, "PostgreSQL": datastoretest.StartPostgreSQL} {
		t.Run(name, func(t *testing.T) {
			datastore := start(t)
			dirs := []string{t.TempDir(), t.TempDir()}
			first := startMember(t, dirs[0], datastore)
			second := startMember(t, dirs[1], datastore)
			oneLandscape(t, first, second)
			works(t, second, "both", time.Now().Add(takeover))

			begin := time.Now()
			first.kill(t)
			works(t, second, "first-killed", begin.Add(takeover))
			t.Logf("%s: the second process has taken over after %s", name, time.Since(begin).Round(100*time.Millisecond))

			first = startMember(t, dirs[0], datastore)
			begin = time.Now()
			second.kill(t)
			works(t, first, "second-killed", begin.Add(takeover))
			t.Logf("%s: the first process has taken over after %s", name, time.Since(begin).Round(100*time.Millisecond))
			noRefusals(t, first.dir)
		})
	}
}

// noRefusals: no component was forbidden anything.
func noRefusals(t *testing.T, dir string) {
	t.Helper()
	var status struct {
		Components []struct {
			Name      string `json:"name"`
			Forbidden int    `json:"forbidden"`
		} `json:"components"`
	}
	must(t, json.Unmarshal([]byte(run1(t, dir, "status", "-o", "json").OK(t).Stdout), &status))
	for _, c := range status.Components {
		if c.Forbidden > 0 {
			t.Errorf("%s: %d requests were forbidden", c.Name, c.Forbidden)
		}
	}
}

// sampleShoot is the sample that comes with the program, with another name.
func sampleShoot(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("../manifests/samples/shoot.yaml")
	must(t, err)
	shoot := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(data, &shoot.Object))
	shoot.SetName(name)
	return shoot
}

// oneLandscape: what is written through one is read through the other, with the clients of the one.
func oneLandscape(t *testing.T, first, second *member) {
	t.Helper()
	crossed := rest.CopyConfig(first.config)
	crossed.Host = second.config.Host
	info, err := kubernetes.NewForConfigOrDie(crossed).CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
	must(t, err)
	own, err := first.kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
	must(t, err)
	if own.UID != info.UID {
		t.Errorf("two landscapes: their identities are %v and %v", own.Data, info.Data)
	}
}

// works: the controller-manager, the scheduler, the gardenlet and Kubernetes' controllers each do something by then.
func works(t *testing.T, m *member, name string, until time.Time) {
	t.Helper()
	before := leaseOf(t, m).Spec.RenewTime.Time
	project := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": map[string]any{"name": "ha-" + name[:4]}, "spec": map[string]any{},
	}}
	_, err := m.dyn.Resource(projectsResource).Create(t.Context(), project, created)
	must(t, err)
	_, err = m.dyn.Resource(shootsResource).Namespace("garden-dev").Create(t.Context(), sampleShoot(t, "ha-"+name[:4]), created)
	must(t, err)
	eventually(t, time.Until(until), func(ctx context.Context) error {
		project, err := m.dyn.Resource(projectsResource).Get(ctx, project.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(project.Object, "status", "phase")
		namespace, _, _ := unstructured.NestedString(project.Object, "spec", "namespace")
		if phase != "Ready" {
			return fmt.Errorf("the project's phase is %q: no controller-manager works", phase)
		}
		if _, err := m.kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return fmt.Errorf("kubernetes' controllers do not work: %w", err)
		}
		shoot, err := m.dyn.Resource(shootsResource).Namespace("garden-dev").Get(ctx, "ha-"+name[:4], metav1.GetOptions{})
		if err != nil {
			return err
		}
		if seed, _, _ := unstructured.NestedString(shoot.Object, "spec", "seedName"); seed == "" {
			return fmt.Errorf("the shoot has no seed: no scheduler works")
		}
		if now := leaseOf(t, m).Spec.RenewTime.Time; !now.After(before) {
			return fmt.Errorf("the seed's lease is of %s: no gardenlet works", now)
		}
		return nil
	})
}

func leaseOf(t *testing.T, m *member) *coordinationv1.Lease {
	t.Helper()
	lease, err := m.kube.CoordinationV1().Leases("gardener-system-seed-lease").Get(t.Context(), "local", metav1.GetOptions{})
	must(t, err)
	return lease
}
