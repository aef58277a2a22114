package agent

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient/apitest"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/host/hosttest"
	"github.com/gardenlite/gardenlite/internal/node/kubelet"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

const (
	name        = "node-1"
	secretName  = "gardener-node-agent-p-abc"
	secretsPath = "/api/v1/namespaces/kube-system/secrets"
	secretPath  = secretsPath + "/" + secretName
	nodePath    = "/api/v1/nodes/" + name
)

// world is a machine in memory with gardener-node-agent, which starts the kubelet.
type world struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	api     *apitest.Server
	machine *hosttest.Machine
	host    host.Host
	config  node.AgentConfig
	kubelet node.KubeletConfig
	started chan struct{}
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Now()), started: make(chan struct{}, 10)}
	w.api = apitest.New(t, w.clock)
	w.machine, w.host = hosttest.New(name, w.clock)
	w.config = node.AgentConfig{APIServer: w.api.URL, CA: string(w.api.CA), SecretName: secretName}
	w.kubelet = node.KubeletConfig{APIServer: w.api.URL, CA: string(w.api.CA), KubernetesVersion: "1.36.4"}
	w.machine.Units.OnStart = func(unit string) {
		if unit == node.UnitKubelet {
			w.started <- struct{}{}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("it has ended with %v", err)
			}
		}
	})
	w.write(node.PathBootstrapToken, apitest.Token+"\n")
	files, err := node.Files(w.config, w.kubelet, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := node.Content(files[0])
	if err != nil || files[0].Path != node.PathAgentConfig {
		t.Fatal(err, files[0].Path)
	}
	w.write(node.PathAgentConfig, string(config))
	w.write(unitFolder+node.UnitNodeAgent, *node.Units()[1].Content)
	if err := w.host.Units.Start(t.Context(), node.UnitNodeAgent); err != nil {
		t.Fatal(err)
	}
	w.machine.Units.Done()
	go func() { ended <- Run(ctx, w.host) }()
	go func() {
		select {
		case <-w.started:
			ended <- kubelet.Run(ctx, w.host, nil)
		case <-ctx.Done():
			ended <- nil
		}
	}()
	return w
}

func (w *world) write(path, content string) {
	w.t.Helper()
	if err := w.machine.Files.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(path string) string {
	data, err := w.machine.Files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	return string(data)
}

// order puts a configuration into the Secret, as the gardenlet does, and returns its checksum.
func (w *world) order(change func(*extensionsv1alpha1.OperatingSystemConfig), keys ...string) string {
	w.t.Helper()
	files, err := node.Files(w.config, w.kubelet, keys)
	if err != nil {
		w.t.Fatal(err)
	}
	osc := &extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{Files: files, Units: node.Units()}}
	if change != nil {
		change(osc)
	}
	data, err := node.EncodeOSC(osc)
	if err != nil {
		w.t.Fatal(err)
	}
	w.api.Put(w.t, secretsPath+"/"+w.config.SecretName,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: w.config.SecretName}, Data: map[string][]byte{node.DataKeyOSC: data}})
	return node.Checksum(data)
}

func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	testutil.EventuallyTrue(w.t, what, func() bool {
		if so() {
			return true
		}
		w.clock.Step(10 * time.Millisecond)
		return false
	})
}

// applied waits until the Node has the checksum and the Kubernetes version of the configuration.
func (w *world) applied(checksum string) {
	w.t.Helper()
	w.until("the checksum at the Node", func() bool {
		n := &corev1.Node{}
		return w.api.Get(w.t, nodePath, n) && n.Annotations[node.AnnotationChecksum] == checksum &&
			n.Labels[node.LabelKubernetesVersion] == w.kubelet.KubernetesVersion
	})
}

func TestBecomesANode(t *testing.T) {
	w := newWorld(t)
	w.applied(w.order(nil, "ssh-rsa A", "ssh-rsa B"))
	if keys := w.read(node.PathAuthorizedKeys); keys != "ssh-rsa A\nssh-rsa B\n" {
		t.Errorf("who may log in: %q", keys)
	}
	if done := w.machine.Units.Done(); done != "enable kubelet.service, start kubelet.service" {
		t.Errorf("units: %s", done)
	}
	w.until("no bootstrap token", func() bool {
		return w.read(node.PathBootstrapToken) == "-" && w.read(node.PathKubeconfigBootstrap) == "-"
	})
}

func TestKeysReachARunningNode(t *testing.T) {
	w := newWorld(t)
	w.applied(w.order(nil, "ssh-rsa A"))
	w.machine.Units.Done()
	w.applied(w.order(nil, "ssh-rsa B"))
	if keys := w.read(node.PathAuthorizedKeys); keys != "ssh-rsa B\n" {
		t.Errorf("who may log in: %q", keys)
	}
	if done := w.machine.Units.Done(); strings.Contains(done, "start") {
		t.Errorf("for that, units were touched: %s", done)
	}
}

// TestRestoresKeys checks that a key that was added by hand is removed within half a minute, without a new
// configuration.
func TestRestoresKeys(t *testing.T) {
	w := newWorld(t)
	w.applied(w.order(nil, "ssh-rsa A", "ssh-rsa B"))
	w.machine.Units.Done()
	w.write(node.PathAuthorizedKeys, "ssh-rsa A\nssh-rsa B\nssh-rsa stranger\n")
	testutil.EventuallyTrue(t, "the keys as they were applied", func() bool {
		w.clock.Step(checkInterval)
		return w.read(node.PathAuthorizedKeys) == "ssh-rsa A\nssh-rsa B\n"
	})
	if checkInterval > 30*time.Second {
		t.Errorf("the keys are checked each %s only", checkInterval)
	}
	if done := w.machine.Units.Done(); done != "" {
		t.Errorf("for that, units were touched: %s", done)
	}
}

func TestChangedUnits(t *testing.T) {
	w := newWorld(t)
	extra := func(content string) func(*extensionsv1alpha1.OperatingSystemConfig) {
		return func(osc *extensionsv1alpha1.OperatingSystemConfig) {
			osc.Spec.Files = append(osc.Spec.Files, extensionsv1alpha1.File{Path: "/etc/x",
				Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: content}}})
			osc.Spec.Units = append(osc.Spec.Units, extensionsv1alpha1.Unit{
				Name: "x.service", Enable: ptr.To(true), Content: ptr.To("[Service]"), FilePaths: []string{"/etc/x"},
				DropIns: []extensionsv1alpha1.DropIn{{Name: "10.conf", Content: "d"}},
			})
		}
	}
	w.applied(w.order(extra("1")))
	w.machine.Units.Done()
	if w.read("/etc/x") != "1" || w.read("/etc/systemd/system/x.service") != "[Service]" ||
		w.read("/etc/systemd/system/x.service.d/10.conf") != "d" {
		t.Error("the files of the unit are not there")
	}

	w.applied(w.order(extra("2")))
	if done := w.machine.Units.Done(); done != "enable x.service, restart x.service" {
		t.Errorf("a file of the unit has changed: %s", done)
	}

	w.kubelet.KubernetesVersion = "1.36.5"
	w.applied(w.order(nil))
	if done := w.machine.Units.Done(); done != "enable kubelet.service, restart kubelet.service, stop x.service, disable x.service" {
		t.Errorf("the unit goes, and the kubelet has another version: %s", done)
	}
	for _, path := range []string{"/etc/x", "/etc/systemd/system/x.service", "/etc/systemd/system/x.service.d/10.conf"} {
		if w.read(path) != "-" {
			t.Errorf("there still is %s", path)
		}
	}
}

// TestSSHServer: the machine's SSH server runs or stops as the configuration says.
func TestSSHServer(t *testing.T) {
	w := newWorld(t)
	w.applied(w.order(nil))
	w.machine.Units.Done()
	for _, step := range []struct {
		enabled bool
		command extensionsv1alpha1.UnitCommand
		done    string
	}{
		{true, extensionsv1alpha1.CommandStart, "enable ssh.service, start ssh.service"},
		{false, extensionsv1alpha1.CommandStop, "disable ssh.service, stop ssh.service"},
		{true, extensionsv1alpha1.CommandStart, "enable ssh.service, start ssh.service"},
	} {
		w.applied(w.order(func(osc *extensionsv1alpha1.OperatingSystemConfig) {
			osc.Spec.Units = append(osc.Spec.Units,
				extensionsv1alpha1.Unit{Name: node.UnitSSH, Enable: &step.enabled, Command: &step.command})
		}))
		if done := w.machine.Units.Done(); done != step.done || w.machine.Units.IsActive(node.UnitSSH) != step.enabled {
			t.Errorf("to be enabled %t: %s", step.enabled, done)
		}
	}
}

func TestUnitThatFails(t *testing.T) {
	w := newWorld(t)
	w.machine.Units.Fail = map[string]error{"start x.service": os.ErrInvalid}
	w.order(func(osc *extensionsv1alpha1.OperatingSystemConfig) {
		osc.Spec.Units = append([]extensionsv1alpha1.Unit{{Name: "x.service", Content: ptr.To("[Service]")}}, osc.Spec.Units...)
	})
	w.until("the other units", func() bool { return w.machine.Units.IsActive(node.UnitKubelet) })
	w.until("a Node", func() bool { return w.api.Get(t, nodePath, &corev1.Node{}) })
	n := &corev1.Node{}
	if w.api.Get(t, nodePath, n); n.Annotations[node.AnnotationChecksum] != "" {
		t.Error("the Node says that it has what has failed")
	}
	w.applied(w.order(nil))
}

// TestRestartsUnitAfterError checks that a unit that has changed is restarted after an error of another unit, although its
// file is up to date by then.
func TestRestartsUnitAfterError(t *testing.T) {
	machine, h := hosttest.New(name, clocktesting.NewFakeClock(time.Now()))
	a := &Agent{host: h, pending: map[string]bool{}}
	if err := h.Units.Start(t.Context(), "x.service"); err != nil {
		t.Fatal(err)
	}
	machine.Units.Fail = map[string]error{"restart x.service": os.ErrInvalid}
	units := []extensionsv1alpha1.Unit{{Name: "x.service", Content: ptr.To("[Service]")}}
	if err := a.applyUnits(t.Context(), units, nil); !errors.Is(err, os.ErrInvalid) {
		t.Fatalf("the unit fails with %v", err)
	}
	machine.Units.Fail = nil
	machine.Units.Done()
	for _, want := range []string{"restart x.service", ""} {
		if err := a.applyUnits(t.Context(), units, nil); err != nil {
			t.Fatal(err)
		}
		if done := machine.Units.Done(); done != want {
			t.Errorf("units: %q, not %q", done, want)
		}
	}
}

// TestPathUnit: the service of a path unit is restarted when the file that it watches is written.
func TestPathUnit(t *testing.T) {
	machine, h := hosttest.New(name, clocktesting.NewFakeClock(time.Now()))
	a := &Agent{host: h, pending: map[string]bool{}}
	units := []extensionsv1alpha1.Unit{
		{Name: "x.path", Content: ptr.To("[Path]\nPathChanged=/etc/x\nUnit=x.service\n")},
		{Name: "x.service", Content: ptr.To("[Service]")},
	}
	for _, step := range []struct{ written, done string }{
		{"/etc/other", "start x.service"}, {"/etc/other", ""}, {"/etc/x", "restart x.service"}, {"", ""},
	} {
		if err := a.applyUnits(t.Context(), units, []string{step.written}); err != nil {
			t.Fatal(err)
		}
		if done := machine.Units.Done(); done != step.done {
			t.Errorf("%q is written: units %q, not %q", step.written, done, step.done)
		}
	}
	if len(a.pending) > 0 {
		t.Errorf("it waits for %v", a.pending)
	}
}

func TestFollowsANewSecret(t *testing.T) {
	w := newWorld(t)
	w.applied(w.order(nil))
	old := w.config.SecretName
	w.config.SecretName = "gardener-node-agent-p-other"
	sum := w.order(nil, "ssh-rsa other")
	other := &corev1.Secret{}
	w.api.Get(t, secretsPath+"/"+w.config.SecretName, other)
	w.api.Put(t, secretsPath+"/"+old, other) // its configuration names the other Secret
	w.applied(sum)
	w.applied(w.order(nil, "ssh-rsa more"))
}

// TestOldSecret checks that the agent watches a Secret that is older than what the API server remembers, and does not read
// it again and again.
func TestOldSecret(t *testing.T) {
	w := newWorld(t)
	w.api.ForgetHistory()
	w.applied(w.order(nil, "ssh-rsa A"))
	w.applied(w.order(nil, "ssh-rsa B"))
	if n := w.api.Requests("GET " + secretPath + " by system:node:" + name); n != 1 {
		t.Errorf("the Secret was read %d times with the certificate, once expected", n)
	}
}

func TestSurvivesOutages(t *testing.T) {
	w := newWorld(t)
	w.api.Refuse("GET "+secretPath, http.StatusInternalServerError)
	sum := w.order(nil)
	w.until("a few attempts", func() bool { return w.api.Requests("GET "+secretPath+" by bootstrap") > 2 })
	w.api.Refuse("GET "+secretPath, 0)
	w.applied(sum)
}
