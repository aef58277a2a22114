package gardenapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

// upForWorlds starts a landscape for worlds that tests create: none of its components changes them.
func upForWorlds(t *testing.T, dir string, without ...string) {
	t.Helper()
	selection := "*,-controller-manager,-scheduler"
	for _, component := range without {
		selection += ",-" + component
	}
	up(t, dir, "--seeds=0", "--controllers="+selection).OK(t)
}

// worldOfItsOwn starts the landscape in a directory, and creates a world in it.
func worldOfItsOwn(t *testing.T, world, dir string, without ...string) *accessWorld {
	t.Helper()
	upForWorlds(t, dir, without...)
	admin, err := clientcmd.BuildConfigFromFlags("", statusOf(t, dir).Kubeconfig)
	must(t, err)
	return newAccessWorld(t, world, dir, admin)
}

// TestAccessInTurn has the tests that need a garden for themselves: they stop it or its admission controller, look at all of its
// objects, fill it, and in the end spoil its RBAC.
func TestAccessInTurn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "landscape")
	t.Run("admission controller down", func(t *testing.T) { admissionControllerDown(t, dir) })
	t.Run("admission controller of its own", func(t *testing.T) { admissionControllerForGarden(t, dir) })
	t.Run("restart", func(t *testing.T) { accessAfterRestart(t, dir) })
	t.Run("many references", func(t *testing.T) { accessManyReferences(t, dir) })
	t.Run("check while writing", func(t *testing.T) { accessCheckWhileWriting(t, dir) })
	t.Run("check interrupted", func(t *testing.T) { accessCheckInterrupted(t, dir) })
	t.Run("check", func(t *testing.T) { accessCheckFindsHoles(t, dir) })
}

// accessAfterRestart stops a landscape and starts it again: nothing that was not allowed is allowed at any time,
// and everything that was allowed is allowed again.
func accessAfterRestart(t *testing.T, dir string) {
	w := worldOfItsOwn(t, "rs", dir)
	w.settle(t)
	gardenlite(t, dir, "down").OK(t)

	ctx, cancel := context.WithCancel(t.Context())
	var answered atomic.Int64
	watched := make(chan string, 1)
	go func() { watched <- w.forbiddenFruit(ctx, &answered) }()
	upForWorlds(t, dir)
	if err := w.compare(t.Context(), w.askers(), "get"); err != nil {
		t.Errorf("right after the start: %v", err)
	}
	eventually(t, waitTimeout, func(context.Context) error {
		if answered.Load() < 50 {
			return fmt.Errorf("only %d answers while it started", answered.Load())
		}
		return nil
	})
	cancel()
	if wrong := <-watched; wrong != "" {
		t.Error(wrong)
	}
	t.Logf("%d answers while it started, none an allow", answered.Load())
	m := &matrix{w: w}
	m.check(t, "after a restart", testutil.Soaking())
	undo := w.move(t)
	w.settle(t)
	gardenlite(t, dir, "down").OK(t)
	upForWorlds(t, dir)
	if err := w.compare(t.Context(), w.askers(), "get"); err != nil {
		t.Errorf("right after the start with moved shoots: %v", err)
	}
	undo()
	w.settle(t)
}

// forbiddenFruit requests a secret of b as a, again and again. It returns at once if it gets the secret, and with ""
// when the context ends.
func (w *accessWorld) forbiddenFruit(ctx context.Context, answered *atomic.Int64) string {
	for ctx.Err() == nil {
		a, err := w.gardenletA.do(ctx, reading("secrets", w.project(), w.b.name+".ssh-keypair"))
		if err != nil {
			continue // the server does not listen yet
		}
		answered.Add(1)
		if a.OK() {
			return "a reads what is b's while the landscape starts"
		}
	}
	return ""
}

// compare checks once for every object, verb and user whether they are authorized as the document says.
func (w *accessWorld) compare(ctx context.Context, users []asker, verbs ...string) error {
	for _, o := range w.objects {
		for _, verb := range verbs {
			r := accessRequest{verb: verb, resource: o.resource, namespace: o.namespace, name: o.name}
			for _, who := range users {
				got, why, err := who.may(ctx, r)
				if err != nil {
					return err
				}
				if want := documentSays(who.kind, who.seed, w, r); got != want {
					return fmt.Errorf("%s %s: authorized: %t, expected %t: %s", who.Name, r, got, want, why)
				}
			}
		}
	}
	return nil
}

// admissionControllerDown runs a garden without an admission controller, and then with one in a process of its
// own, which is stopped and started again.
func admissionControllerDown(t *testing.T, dir string) {
	w := worldOfItsOwn(t, "dn", dir, "admission-controller")
	own, foreign := reading("secrets", w.project(), w.a.name+".ssh-keypair"), reading("secrets", w.project(), w.b.name+".ssh-keypair")
	w.letCreateConfigMaps(t)
	restricted := creating(meta("v1", "ConfigMap", w.project(), "new", nil))
	restricted.forReal = false

	closed := func(when string) {
		t.Helper()
		for _, who := range []*accessUser{w.gardenletA, w.extensionA} {
			for _, r := range []accessRequest{own, foreign, {verb: "list", resource: "shoots"}} {
				// An API server answers 500 if no authorizer allows a request and one of them could not be asked.
				if a := who.must(t, r); !a.NoOpinion() && a.Code != http.StatusInternalServerError {
					t.Errorf("%s: %s %s: %s", when, who.Name, r, a)
				}
			}
			if a := who.must(t, reading("cloudprofiles", "", w.a.name)); !a.OK() {
				t.Errorf("%s: %s may not read what everybody may: %s", when, who.Name, a)
			}
		}
		w.othersWork(t, when)
	}
	closed("never started")
	controller := startAdmissionController(t, dir)
	w.recovers(t, "started", own, foreign)
	eventually(t, waitTimeout, func(context.Context) error { // the ValidatingWebhookConfiguration is new
		if a := w.gardenletA.must(t, restricted); !a.Rejected() {
			return fmt.Errorf("what RBAC allows is not restricted: %s", a)
		}
		return nil
	})
	w.othersWork(t, "started")

	controller.stop(t)
	closed("stopped")
	if a := w.gardenletA.must(t, restricted); a.Code != http.StatusInternalServerError ||
		!bytes.Contains(a.Body, []byte("failed calling webhook")) {
		t.Errorf("stopped: what RBAC allows does not fail: %s", a)
	}
	// The check writes Secrets, which the other webhooks look at.
	if r := gardenlite(t, dir, "access", "check"); r.Code != 1 || !strings.Contains(r.Stderr, "failed calling webhook") {
		t.Errorf("stopped: the access check ends with %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	startAdmissionController(t, dir)
	w.recovers(t, "started again", own, foreign)
	w.settle(t)
}

// recovers waits until a may read its own object, and expects that a may never read the object of b.
func (w *accessWorld) recovers(t *testing.T, when string, own, foreign accessRequest) {
	t.Helper()
	begin := time.Now()
	eventually(t, waitTimeout, func(context.Context) error {
		if a := w.gardenletA.must(t, foreign); a.OK() {
			t.Errorf("%s: a reads what is b's", when)
		}
		if a := w.gardenletA.must(t, own); !a.OK() {
			return fmt.Errorf("%s: %s", own, a)
		}
		return nil
	})
	t.Logf("%s: works after %s", when, time.Since(begin).Round(time.Millisecond))
}

// othersWork makes requests of users for whom neither webhook is called.
func (w *accessWorld) othersWork(t *testing.T, when string) {
	t.Helper()
	begin := time.Now()
	name := fmt.Sprintf("dn-%d", begin.UnixNano())
	_, err := w.at("configmaps", w.project()).Create(
		t.Context(), &unstructured.Unstructured{Object: meta("v1", "ConfigMap", w.project(), name, nil)}, created)
	if err == nil {
		err = w.at("configmaps", w.project()).Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	if err != nil {
		t.Errorf("%s: the administrator: %v", when, err)
	}
	if a := w.elsewhere.must(t, reading("cloudprofiles", "", w.a.name)); !a.OK() {
		t.Errorf("%s: %s: %s", when, w.elsewhere.Name, a)
	}
	if a := w.elsewhere.must(t, reading("secrets", w.project(), "unreferenced")); !a.NoOpinion() {
		t.Errorf("%s: %s: %s", when, w.elsewhere.Name, a)
	}
}

// letCreateConfigMaps grants a a right in RBAC, so that only the restriction can refuse the request.
func (w *accessWorld) letCreateConfigMaps(t *testing.T) {
	t.Helper()
	const group = "rbac.authorization.k8s.io"
	name := w.name + "-configmaps"
	w.create(t, &unstructured.Unstructured{Object: meta(group+"/v1", "ClusterRole", "", name, map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"create"}}}})}, "")
	w.create(t, &unstructured.Unstructured{Object: meta(group+"/v1", "ClusterRoleBinding", "", name, map[string]any{
		"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": name},
		"subjects": []any{map[string]any{"kind": "User", "apiGroup": group, "name": "gardener.cloud:system:seed:" + w.a.name}}})}, "")
	t.Cleanup(func() { // access check would find it
		must(t, w.at("clusterrolebindings", "").Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
	})
}

// aloneController is "gardenlite admission-controller", at the port at which the garden of a landscape expects one.
type aloneController struct {
	cmd    *exec.Cmd
	output *bytes.Buffer
	ended  chan error
}

func startAdmissionController(t *testing.T, dir string) *aloneController {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	must(t, err)
	var run struct {
		AdmissionPort int `json:"admissionPort"`
	}
	must(t, json.Unmarshal(data, &run))
	pki := filepath.Join(dir, "pki", "garden")
	c := &aloneController{output: &bytes.Buffer{}, ended: make(chan error, 1)}
	c.cmd = exec.Command(binary, "admission-controller", "--kubeconfig", filepath.Join(dir, "kubeconfig"), "--data-dir", t.TempDir(),
		"--port", fmt.Sprint(run.AdmissionPort), "--tls-cert-file", filepath.Join(pki, "apiserver.crt"),
		"--tls-private-key-file", filepath.Join(pki, "apiserver.key"),
		"--tls-ca-file", filepath.Join(pki, "ca.crt"), "--client-ca-file", filepath.Join(pki, "ca.crt"), "--install")
	c.cmd.Stdout, c.cmd.Stderr = c.output, c.output
	must(t, c.cmd.Start())
	go func() { c.ended <- c.cmd.Wait() }()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		if <-c.ended; t.Failed() {
			t.Logf("the admission controller said: %s", c.output)
		}
	})
	return c
}

// stop ends the process as Ctrl-C does.
func (c *aloneController) stop(t *testing.T) {
	t.Helper()
	must(t, c.cmd.Process.Signal(os.Interrupt))
	select {
	case err := <-c.ended:
		c.ended <- err
		if err != nil {
			t.Errorf("the admission controller ended with %v: %s", err, c.output)
		}
	case <-time.After(waitTimeout):
		t.Fatal("the admission controller does not end")
	}
}
