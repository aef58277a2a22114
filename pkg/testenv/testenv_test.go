package testenv_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gardenlite/gardenlite/internal/testutil"
	"github.com/gardenlite/gardenlite/pkg/testenv"
)

// TestEnv uses the package as another module's test would, and starts a second landscape beside the first.
func TestEnv(t *testing.T) {
	expectClosed(t)
	env := testenv.Start(t)
	other := testenv.Start(t, testenv.WithSeeds(0), testenv.WithCRDs("testdata/crds"),
		testenv.WithManifests("testdata/objects"), testenv.WithWebhooks("testdata/webhooks"))

	for e, want := range map[*testenv.Env]int{env: 1, other: 2} {
		list := &corev1beta1.CloudProfileList{}
		if err := e.Client().List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want {
			t.Errorf("%d CloudProfiles, expected %d", len(list.Items), want)
		}
	}
	config, err := env.ConfigFor("alice@example.com")
	if err != nil {
		t.Fatal(err)
	}
	alice := kubernetes.NewForConfigOrDie(config)
	if _, err := alice.CoreV1().Secrets("garden-dev").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a stranger lists secrets")
	}
	for e, says := range map[*testenv.Env]string{
		env: `no seed "nowhere": the landscape has local`, other: "has no seeds, see WithSeeds"} {
		if _, err := e.Seed("nowhere"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a seed that there is not: %v", err)
		}
	}
	t.Run("webhooks", func(t *testing.T) { testWebhooks(t, other) })
	t.Run("existing", func(t *testing.T) { testExisting(t, env) })
}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "garden-dev", "name": name}}}
}

// testWebhooks creates objects of a kind of the test, which a webhook server of the test looks at.
func testWebhooks(t *testing.T, env *testenv.Env) {
	applied := widget("applied")
	if err := env.Client().Get(t.Context(), client.ObjectKeyFromObject(applied), applied); err != nil {
		t.Errorf("the manifest of a kind of the test's own: %v", err)
	}
	server := webhook.NewServer(env.WebhookServerOptions())
	server.Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(
		func(_ context.Context, r admission.Request) admission.Response {
			return admission.ValidationResponse(r.Name != "bad", "it is bad")
		})})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	testutil.Eventually(t, time.Minute, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Client().Create(ctx, widget("good")))
	})
	if err := env.Client().Create(t.Context(), widget("bad")); err == nil || !strings.Contains(err.Error(), "it is bad") {
		t.Errorf("the webhook did not refuse it: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// testExisting uses a running landscape as if it were that of another process, and leaves it as it was.
func testExisting(t *testing.T, env *testenv.Env) {
	t.Setenv("GARDENLITE_DATA_DIR", filepath.Dir(env.Kubeconfig()))
	for says, opts := range map[string][]testenv.Option{
		"WithSeeds(2): the landscape in":           {testenv.WithSeeds(2)},
		"WithImage: a landscape that runs already": {testenv.WithImage("a", "/b")},
	} {
		_, err := testenv.New(t.Context(), append(opts, testenv.WithExisting(""))...)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	t.Run("in use", func(t *testing.T) {
		same := testenv.Start(t, testenv.WithSeeds(1), testenv.WithCRDs("testdata/crds"),
			testenv.WithWebhooks("testdata/webhooks"))
		if same.Config().Host != env.Config().Host {
			t.Errorf("it is another one: %s", same.Config().Host)
		}
		same.CreateShoot(t, "short", testenv.WithoutWaiting(), testenv.WithWorkers(0))
		if _, err := same.Seed("local"); err != nil {
			t.Error(err)
		}
		if _, err := same.ConfigFor("alice@example.com"); err != nil {
			t.Error(err)
		}
		if err := same.Client().Create(t.Context(), widget("no-server")); err == nil {
			t.Error("there is no webhook")
		}
	})
	// An API server sees within moments that a webhook is deleted.
	testutil.Eventually(t, time.Minute, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Client().Create(ctx, widget("left")))
	})
	shoots := &corev1beta1.ShootList{}
	if err := env.Client().List(t.Context(), shoots); err != nil || len(shoots.Items) > 0 {
		t.Errorf("%d Shoots are left: %v", len(shoots.Items), err)
	}
	t.Setenv("GARDENLITE_DATA_DIR", t.TempDir())
	if _, err := testenv.New(t.Context()); err == nil || !strings.Contains(err.Error(), `start it with "gardenlite up"`) {
		t.Errorf("no landscape runs: %v", err)
	}
}

// TestErrorsNameOptions checks that wrong options are named as in this package, and that nothing is left of them.
func TestErrorsNameOptions(t *testing.T) {
	expectClosed(t)
	t.Setenv("TMPDIR", t.TempDir())
	for says, opt := range map[string]testenv.Option{
		"WithSeeds 101: between 0 and 100":               testenv.WithSeeds(101),
		"WithDatastore: ":                                testenv.WithDatastore("mongodb://x"),
		"WithImage: ":                                    testenv.WithImage("a b", "/bin/true"),
		"WithManifests: ":                                testenv.WithManifests("/does/not/exist"),
		"WithCRDs: stat /does/not/exist":                 testenv.WithCRDs("/does/not/exist"),
		"WithWebhooks: stat /does/not/exist":             testenv.WithWebhooks("testdata", "/does/not/exist"),
		"WithReadyTimeout -1s":                           testenv.WithReadyTimeout(-time.Second),
		"WithLog: ":                                      testenv.WithLog("/does/not/exist/log"),
		`WithAdmissionPlugins: there is no plugin "X"`:   testenv.WithAdmissionPlugins([]string{"X"}, nil),
		`WithFeatureGates: there is no feature gate "Y"`: testenv.WithFeatureGates(map[string]bool{"Y": true}),
		`WithControllers: `:                              testenv.WithControllers("no-controller"),
		`WithExisting "Not A Name"`:                      testenv.WithExisting("Not A Name"),
		"WithExisting":                                   testenv.WithExisting("Also Not"),
	} {
		_, err := testenv.New(t.Context(), opt)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "--") {
			t.Errorf("%q is not in: %v", says, err)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// failing is a test that has failed.
type failing struct {
	testing.TB
	cleanups []func()
	logs     string
}

func (f *failing) Failed() bool      { return true }
func (f *failing) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }
func (f *failing) Log(args ...any)   { f.logs += args[0].(string) }

// TestReports checks that the log of a landscape is kept and shown if its start or its test fails.
func TestReports(t *testing.T) {
	expectClosed(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	kept := func(text string) {
		t.Helper()
		logs, err := filepath.Glob(filepath.Join(temporary, "*"))
		if err != nil || len(logs) != 1 || !strings.Contains(text, "the log is kept in "+logs[0]) ||
			!strings.Contains(text, "level=") {
			t.Fatalf("left are %v, %v; it says %s", logs, err, text)
		}
		if err := os.Remove(logs[0]); err != nil {
			t.Error(err)
		}
	}
	_, err := testenv.New(t.Context(), testenv.WithReadyTimeout(300*time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "not ready within 300ms (WithReadyTimeout)") {
		t.Fatalf("a start that takes too long: %v", err)
	}
	kept(err.Error())

	failed := &failing{TB: t}
	env := testenv.Start(failed, testenv.WithSeeds(0))
	env.CreateShoot(t, "pending", testenv.WithoutWaiting())
	for _, do := range failed.cleanups {
		do()
	}
	if !strings.Contains(failed.logs, `Shoot dev/pending on seed ""`) {
		t.Errorf("the Shoot is not shown: %s", failed.logs)
	}
	kept(failed.logs)

	file := filepath.Join(t.TempDir(), "log")
	env = testenv.Start(t, testenv.WithSeeds(0), testenv.WithLog(file))
	if err := env.Client().Get(t.Context(), client.ObjectKey{Name: "garden"}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "level=INFO") {
		t.Errorf("the log: %v, %s", err, data)
	}
}

// TestBareGarden: there is nothing but what gardener-apiserver creates, and a plugin and a feature gate are as they are asked for.
func TestBareGarden(t *testing.T) {
	expectClosed(t)
	env := testenv.Start(t, testenv.WithBareGarden(), testenv.WithAdmissionPlugins(nil, []string{"DeletionConfirmation"}),
		testenv.WithFeatureGates(map[string]bool{"DisableNginxIngressInShoot": true}))
	namespaces := &corev1.NamespaceList{}
	if err := env.Client().List(t.Context(), namespaces); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, namespace := range namespaces.Items {
		names = append(names, namespace.Name)
	}
	if want := []string{"default", "gardener-system-seed-lease", "gardener-system-shoot-issuer", "kube-node-lease", "kube-public",
		"kube-system"}; !slices.Equal(names, want) {
		t.Errorf("the namespaces are %v", names)
	}
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "short"}}
	for _, do := range []func() error{
		func() error { return env.Client().Create(t.Context(), project) },
		func() error { return env.Client().Delete(t.Context(), project) },
	} {
		if err := do(); err != nil {
			t.Errorf("without the plugin DeletionConfirmation: %v", err)
		}
	}
	_, err := testenv.New(t.Context(), testenv.WithBareGarden())
	if err == nil || !strings.Contains(err.Error(), "DisableNginxIngressInShoot") {
		t.Errorf("a second landscape in this process with other feature gates: %v", err)
	}
}
