package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

var (
	configMaps   = corev1.SchemeGroupVersion.WithResource("configmaps")
	namespaces   = corev1.SchemeGroupVersion.WithResource("namespaces")
	clusterRoles = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
)

func get(t *testing.T, client *fake.FakeDynamicClient, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := client.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func writes(client *fake.FakeDynamicClient) (verbs []string) {
	for _, action := range client.Actions() {
		if verb := action.GetVerb(); verb != "get" {
			verbs = append(verbs, verb+" "+action.GetResource().Resource)
		}
	}
	return verbs
}

func TestSetUp(t *testing.T) {
	client := fake.NewSimpleDynamicClient(scheme.Scheme)
	info := Info{GardenerVersion: "v1.149.0", WorkloadIdentityIssuerURL: "https://issuer.example.com"}
	if err := setUp(t.Context(), client, info); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"garden", "gardener-system-public", "gardener-system-seed-lease", "gardener-system-shoot-issuer"} {
		get(t, client, namespaces, "", name)
	}
	description, _, _ := unstructured.NestedString(get(t, client, configMaps, "gardener-system-public", "gardener-info").Object, "data", "gardenerAPIServer")
	if want := "version: v1.149.0\nworkloadIdentityIssuerURL: https://issuer.example.com\n"; description != want {
		t.Errorf("gardener-info says %q, want %q", description, want)
	}
	identity, _, _ := unstructured.NestedStringMap(get(t, client, configMaps, "kube-system", "cluster-identity").Object, "data")
	if identity["cluster-identity"] == "" || identity["origin"] != "gardener-apiserver" {
		t.Errorf("the identity is %v", identity)
	}

	client.ClearActions()
	info.ClusterIdentity = "another"
	if err := setUp(t.Context(), client, info); err != nil {
		t.Fatal(err)
	}
	if again, _, _ := unstructured.NestedStringMap(get(t, client, configMaps, "kube-system", "cluster-identity").Object, "data"); !maps.Equal(identity, again) {
		t.Errorf("the identity was %v and is %v", identity, again)
	}
	if verbs := writes(client); slices.ContainsFunc(verbs, func(verb string) bool { return strings.HasPrefix(verb, "update") }) {
		t.Errorf("written although nothing had changed: %v", verbs)
	}
}

func TestEnsureRepairsAndKeeps(t *testing.T) {
	aggregated := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:project-member", Labels: map[string]string{"mine": "yes", "gardener.cloud/role": "wrong"}},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, Resources: []string{"aggregated"}}},
	}
	weakened := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:project-creation"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
	}
	old := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-public", Name: "gardener-info"},
		Data:       map[string]string{"gardenerAPIServer": "version: v1.0.0\n", "other": "kept"},
	}
	client := fake.NewSimpleDynamicClient(scheme.Scheme, aggregated, weakened, old)
	if err := setUp(t.Context(), client, Info{GardenerVersion: "v2.0.0"}); err != nil {
		t.Fatal(err)
	}
	role := get(t, client, clusterRoles, "", aggregated.Name)
	if labels := role.GetLabels(); labels["mine"] != "yes" || labels["gardener.cloud/role"] != "project-member" {
		t.Errorf("the labels are %v", labels)
	}
	if rules, _, _ := unstructured.NestedSlice(role.Object, "rules"); len(rules) != 1 {
		t.Errorf("rules that were aggregated are now %v", rules)
	}
	if _, found, _ := unstructured.NestedMap(role.Object, "aggregationRule"); !found {
		t.Error("there is no aggregation rule")
	}
	if rules, _, _ := unstructured.NestedSlice(get(t, client, clusterRoles, "", weakened.Name).Object, "rules"); strings.Contains(fmt.Sprint(rules), "*") {
		t.Errorf("rules that somebody has changed are still %v", rules)
	}
	data, _, _ := unstructured.NestedStringMap(get(t, client, configMaps, old.Namespace, old.Name).Object, "data")
	if data["gardenerAPIServer"] != "version: v2.0.0\n" || data["other"] != "kept" {
		t.Errorf("gardener-info is %v", data)
	}
}

func TestSetUpWaitsForNamespacesAndSaysWhatFailed(t *testing.T) {
	client := fake.NewSimpleDynamicClient(scheme.Scheme)
	var lock sync.Mutex
	missing := 3
	client.PrependReactor("create", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		lock.Lock()
		defer lock.Unlock()
		if missing--; missing >= 0 && action.GetNamespace() == "kube-system" {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kube-system")
		}
		return false, nil, nil
	})
	if err := setUp(t.Context(), client, Info{}); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	client = fake.NewSimpleDynamicClient(scheme.Scheme)
	client.PrependReactor("create", "clusterrolebindings", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
	err := setUp(t.Context(), client, Info{})
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), ".yaml, document ") || !strings.Contains(err.Error(), "ClusterRoleBinding") {
		t.Errorf("the error is %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := setUp(ended, client, Info{}); err == nil {
		t.Error("no error although the context has ended")
	}
}

// mapper knows kinds only once they have been added.
type mapper struct {
	*meta.DefaultRESTMapper
	resets int
}

func (m *mapper) Reset() { m.resets++ }

// server is what an applier talks to: it refuses what the function refuses, and notes what it accepts.
type server struct {
	applied []string
	refuse  func(s *server, name string) error
}

func newServer(refuse func(*server, string) error) (*server, *Applier, *mapper) {
	s := &server{refuse: refuse}
	client := fake.NewSimpleDynamicClient(scheme.Scheme)
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.PatchAction).GetName()
		if s.refuse != nil {
			if err := s.refuse(s, name); err != nil {
				return true, nil, err
			}
		}
		if namespace := action.GetNamespace(); namespace != "" {
			name = namespace + "/" + name
		}
		s.applied = append(s.applied, name)
		return true, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "K"}}, nil
	})
	m := &mapper{DefaultRESTMapper: meta.NewDefaultRESTMapper(nil)}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return s, &Applier{client: client, mapper: m, patience: applyRetry}, m
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func manifest(kind string, names ...string) string {
	var documents []string
	for _, name := range names {
		documents = append(documents, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: "+name+"}\n")
	}
	return strings.Join(documents, "---\n")
}

func (s *server) has(name string) bool { return slices.Contains(s.applied, name) }

func invalid(name string) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, name, nil)
}

func forbidden(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, name, errors.New("what it refers to is not there"))
}

func TestPathKeepsTheOrderNamespacesFirst(t *testing.T) {
	s, applier, _ := newServer(nil)
	dir := writeFiles(t, map[string]string{
		"10-first.yaml":      manifest("ConfigMap", "b", "a"),
		"20-second.yml":      manifest("Namespace", "ns") + "---\n" + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\n",
		"30-below/last.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}`,
		"40-notes.txt":       "no manifest",
	})
	if err := applier.Path(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.applied, " "); got != "ns default/b default/a ns/c default/d" {
		t.Errorf("applied %s", got)
	}
	if err := applier.Path(t.Context(), filepath.Join(dir, "40-notes.txt")); err == nil {
		t.Error("a file without manifests is applied")
	}
	if err := applier.Path(t.Context(), filepath.Join(dir, "not-there")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestPathTriesAgain(t *testing.T) {
	attempts := 0
	for name, test := range map[string]struct {
		refuse func(*server, string) error
		served bool
	}{
		"reference to a later document, refused by admission": {served: true, refuse: func(s *server, name string) error {
			if name == "a" && !s.has("default/z") {
				return forbidden(name)
			}
			return nil
		}},
		"reference to a later document, refused by validation": {served: true, refuse: func(s *server, name string) error {
			if name == "a" && !s.has("default/z") {
				return invalid(name)
			}
			return nil
		}},
		"something that a controller makes": {served: true, refuse: func(_ *server, name string) error {
			if attempts++; name == "a" && attempts < 6 {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "garden-dev")
			}
			return nil
		}},
		"a kind that is served later": {},
	} {
		t.Run(name, func(t *testing.T) {
			s, applier, m := newServer(test.refuse)
			applier.patience = time.Minute
			files := map[string]string{"a.yaml": manifest("ConfigMap", "a"), "z.yaml": manifest("ConfigMap", "z")}
			want := 2
			if !test.served {
				files["b.yaml"], want = manifest("Widget", "w"), 3
				s.refuse = func(*server, string) error {
					m.Add(corev1.SchemeGroupVersion.WithKind("Widget"), meta.RESTScopeNamespace)
					return nil
				}
				// Nothing is accepted before the kind is known to be missing.
				files["a.yaml"], files["b.yaml"] = files["b.yaml"], files["a.yaml"]
			}
			if err := applier.Path(t.Context(), writeFiles(t, files)); err != nil {
				t.Fatal(err)
			}
			if len(s.applied) != want {
				t.Errorf("applied %v", s.applied)
			}
			if !test.served && m.resets == 0 {
				t.Error("the kinds were not asked for again")
			}
		})
	}
}

func TestPathSaysWhatCannotBeApplied(t *testing.T) {
	s, applier, _ := newServer(func(_ *server, name string) error {
		switch name {
		case "bad":
			return invalid(name)
		case "refused":
			return forbidden(name)
		default:
			return nil
		}
	})
	dir := writeFiles(t, map[string]string{"x.yaml": manifest("ConfigMap", "good", "bad"), "y.yaml": manifest("ConfigMap", "refused", "good-too")})
	err := applier.Path(t.Context(), dir)
	for _, want := range []string{filepath.Join(dir, "x.yaml") + ", document 2: ConfigMap bad", filepath.Join(dir, "y.yaml") + ", document 1: ConfigMap refused"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	if !s.has("default/good") || !s.has("default/good-too") {
		t.Errorf("applied only %v", s.applied)
	}

	// With nothing that is wrong in itself, it waits before it gives up.
	err = applier.Path(t.Context(), filepath.Join(dir, "y.yaml"))
	if !apierrors.IsForbidden(errors.Unwrap(unjoin(err))) {
		t.Errorf("the error is %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	applier.patience = time.Hour
	if err := applier.Path(ended, filepath.Join(dir, "y.yaml")); err == nil {
		t.Error("no error although the context has ended")
	}
}

func unjoin(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
}

func TestDefaultLandscapeOnce(t *testing.T) {
	s, applier, m := newServer(nil)
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Secret"},
		{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "CloudProfile"},
		{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "ControllerRegistration"},
		{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Project"},
		{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "SecretBinding"},
		{Group: "security.gardener.cloud", Version: "v1alpha1", Kind: "CredentialsBinding"},
	} {
		scope := meta.RESTScopeNamespace
		if gvk.Group == "core.gardener.cloud" && gvk.Kind != "SecretBinding" {
			scope = meta.RESTScopeRoot
		}
		m.Add(gvk, scope)
	}
	client := kubefake.NewClientset()
	if err := defaultLandscape(t.Context(), client, applier); err != nil {
		t.Fatal(err)
	}
	if len(s.applied) < 6 {
		t.Errorf("applied only %v", s.applied)
	}
	s.applied = nil
	if err := defaultLandscape(t.Context(), client, applier); err != nil || len(s.applied) > 0 {
		t.Errorf("applied again: %v, error %v", s.applied, err)
	}
}
