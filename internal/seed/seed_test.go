package seed

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

var (
	infrastructures = extensionsv1alpha1.SchemeGroupVersion.WithResource("infrastructures")
	bastions        = extensionsv1alpha1.SchemeGroupVersion.WithResource("bastions")
)

func TestMain(m *testing.M) {
	if os.Getenv("GARDENLITE_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
		logrus.SetOutput(io.Discard)
	}
	os.Exit(m.Run())
}

// TestStartAgain starts a seed cluster, uses it, and starts it again from what is on disk.
func TestStartAgain(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Config: controlplane.Config{Name: "local", PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data")}}

	first := start(t, cfg)
	checkCluster(t, first)
	createExtensionObjects(t, first)
	before, identity := definitions(t, first), first.Identity()
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	again := start(t, cfg)
	checkCluster(t, again)
	for _, resource := range []schema.GroupVersionResource{infrastructures, bastions} {
		if _, err := extensionObjects(t, again, resource).Get(t.Context(), "mine", metav1.GetOptions{}); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	}
	if again.Identity() != identity {
		t.Errorf("the cluster was %s and is %s", identity, again.Identity())
	}
	if after := definitions(t, again); !maps.Equal(before, after) {
		t.Errorf("the restart wrote definitions that were as they should be:\nbefore %v\nafter  %v", before, after)
	}
}

func start(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg.OnPhase = func(name string, took time.Duration) { t.Logf("%-30s %s", name, took.Round(time.Millisecond)) }
	cluster, err := Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// checkCluster checks what every seed cluster has, with the permissions of its kubeconfig.
func checkCluster(t *testing.T, c *Cluster) {
	t.Helper()
	kubeconfig, err := c.AdminKubeconfig("seed-local")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "garden", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	identity, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	system, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"cluster-identity": string(system.UID), "origin": "seed"}; !maps.Equal(identity.Data, want) ||
		c.Identity() != want["cluster-identity"] {
		t.Errorf("the identity is %v and the cluster says %s, want %v", identity.Data, c.Identity(), want)
	}
	// A controller creates this ConfigMap.
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps("garden").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
}

func createExtensionObjects(t *testing.T, c *Cluster) {
	t.Helper()
	valid := []struct {
		resource schema.GroupVersionResource
		object   runtime.Object
	}{
		{infrastructures, &extensionsv1alpha1.Infrastructure{
			TypeMeta:   metav1.TypeMeta{APIVersion: extensionsv1alpha1.SchemeGroupVersion.String(), Kind: extensionsv1alpha1.InfrastructureResource},
			ObjectMeta: metav1.ObjectMeta{Name: "mine"},
			Spec: extensionsv1alpha1.InfrastructureSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Region: "local",
			},
		}},
		{bastions, &extensionsv1alpha1.Bastion{
			TypeMeta:   metav1.TypeMeta{APIVersion: extensionsv1alpha1.SchemeGroupVersion.String(), Kind: extensionsv1alpha1.BastionResource},
			ObjectMeta: metav1.ObjectMeta{Name: "mine"},
			Spec: extensionsv1alpha1.BastionSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, UserData: []byte("#!/bin/sh"),
				Ingress: []extensionsv1alpha1.BastionIngressPolicy{},
			},
		}},
	}
	for _, v := range valid {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v.object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := extensionObjects(t, c, v.resource).Create(t.Context(), &unstructured.Unstructured{Object: content},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The definition has the schema of the type, in which fields of a Bastion are required.
	wrong := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"type": "local"}}}
	wrong.SetGroupVersionKind(extensionsv1alpha1.SchemeGroupVersion.WithKind(extensionsv1alpha1.BastionResource))
	wrong.SetName("wrong")
	if _, err := extensionObjects(t, c, bastions).Create(t.Context(), wrong, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a Bastion without ingress and user data is not found invalid: %v", err)
	}
}

func extensionObjects(t *testing.T, c *Cluster, resource schema.GroupVersionResource) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(resource).Namespace("garden")
}

// definitions returns the established CustomResourceDefinitions, with their resource versions.
func definitions(t *testing.T, c *Cluster) map[string]string {
	t.Helper()
	client, err := apiextensionsclient.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, crd := range list.Items {
		if slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}) {
			versions[crd.Name] = crd.ResourceVersion
		}
	}
	for _, name := range []string{"clusters.extensions.gardener.cloud", "managedresources.resources.gardener.cloud",
		"machines.machine.sapcloud.io"} {
		if versions[name] == "" {
			t.Errorf("%s is not established", name)
		}
	}
	return versions
}

// TestNothingIsLeft starts and stops a cluster, and lets starts fail, and checks that no goroutine is left.
func TestNothingIsLeft(t *testing.T) {
	if !testutil.OwnProcess(t) {
		return
	}
	dir := t.TempDir()
	cfg := Config{Config: controlplane.Config{Name: "cycle", PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data")}}
	cycle := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cluster, err := Start(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		taken := cfg
		taken.Port, taken.DataDir = cluster.Server().Port(), filepath.Join(dir, "other")
		if other, err := Start(ctx, taken); !errors.Is(err, controlplane.ErrPortTaken) {
			t.Errorf("on a port that is taken, Start returns %v, %v", other, err)
		}
		if err := cluster.Stop(); err != nil {
			t.Fatal(err)
		}
		late, cancel := context.WithCancel(t.Context())
		lateCfg := cfg
		lateCfg.OnPhase = func(name string, _ time.Duration) {
			if name == "API server ready" {
				cancel()
			}
		}
		if other, err := Start(late, lateCfg); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled during the set-up, Start returns %v, %v", other, err)
		}
	}
	cycle() // creates what is kept until the process ends
	const cycles = 2
	growthBelow := testutil.GoroutineGrowth(t)
	for range cycles {
		cycle()
	}
	growthBelow(cycles)
}

func identityWith(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-identity", Namespace: "kube-system"}, Data: data}
}

func TestEnsureIdentity(t *testing.T) {
	for name, test := range map[string]struct {
		there *corev1.ConfigMap
		want  map[string]string // nil: an error
	}{
		"a new cluster": {nil, map[string]string{"cluster-identity": "uid", "origin": "seed"}},
		"one that has one": {identityWith(map[string]string{"cluster-identity": "shoot-1", "origin": "shoot"}),
			map[string]string{"cluster-identity": "shoot-1", "origin": "shoot"}},
		"one without value": {identityWith(nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid"}}}
			if test.there != nil {
				objects = append(objects, test.there)
			}
			client := fake.NewClientset(objects...)
			identity, err := ensureIdentity(t.Context(), client)
			if test.want == nil {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			cm, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(cm.Data, test.want) || identity != test.want["cluster-identity"] {
				t.Errorf("the ConfigMap has %v, and %s is returned; want %v", cm.Data, identity, test.want)
			}
		})
	}
}

// TestIdentityOfTwoStarts covers a namespace that is created late, and an identity that another process creates first.
func TestIdentityOfTwoStarts(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid"}})
	missing := 2
	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		if missing--; missing >= 0 {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kube-system")
		}
		return false, nil, nil
	})
	client.PrependReactor("create", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		other := identityWith(map[string]string{"cluster-identity": "the other's"})
		_ = client.Tracker().Add(other)
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, other.Name)
	})
	identity, err := ensureIdentity(t.Context(), client)
	if err != nil || identity != "the other's" {
		t.Errorf("the identity is %q (%v)", identity, err)
	}
	if missing >= 0 {
		t.Error("the namespace was not asked for again")
	}
}
