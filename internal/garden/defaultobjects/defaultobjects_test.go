package defaultobjects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gardenlite/gardenlite/internal/manifest"
)

var (
	configMaps   = corev1.SchemeGroupVersion.WithResource("configmaps")
	namespaces   = corev1.SchemeGroupVersion.WithResource("namespaces")
	clusterRoles = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
)

func get(t *testing.T, client *fake.FakeDynamicClient, resource schema.GroupVersionResource, namespace,
	name string) *unstructured.Unstructured {
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

// scheme contains the types of the default objects.
var scheme = func() *runtime.Scheme {
	all := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(all))
	utilruntime.Must(apiextensionsv1.AddToScheme(all))
	return all
}()

// TestPrograms checks that a component that is left to Gardener's program has the role of that only as long as it is.
func TestPrograms(t *testing.T) {
	client := fake.NewSimpleDynamicClient(scheme)
	var rules []int
	for _, programs := range [][]string{nil, {"scheduler", "controller-manager"}, nil} {
		if err := setUp(t.Context(), client, Info{GardenerVersion: "v1.150.0", Programs: programs}); err != nil {
			t.Fatal(err)
		}
		all, _, _ := unstructured.NestedSlice(get(t, client, clusterRoles, "", "gardener.cloud:system:controller-manager").Object, "rules")
		rules = append(rules, len(all))
	}
	if rules[0] < 10 || rules[1] != 1 || rules[2] != rules[0] {
		t.Errorf("the controller-manager has %v rules", rules)
	}
}

func TestSetUp(t *testing.T) {
	client := fake.NewSimpleDynamicClient(scheme)
	info := Info{GardenerVersion: "v1.150.0", WorkloadIdentityIssuerURL: "https://issuer.example.com"}
	if err := setUp(t.Context(), client, info); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"garden", "gardener-system-public", "gardener-system-seed-lease", "gardener-system-shoot-issuer"} {
		get(t, client, namespaces, "", name)
	}
	description, _, _ := unstructured.NestedString(get(t, client, configMaps, "gardener-system-public", "gardener-info").Object,
		"data", "gardenerAPIServer")
	if want := "version: v1.150.0\nworkloadIdentityIssuerURL: https://issuer.example.com\n"; description != want {
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
	if again, _, _ := unstructured.NestedStringMap(get(t, client, configMaps, "kube-system", "cluster-identity").Object,
		"data"); !maps.Equal(identity, again) {
		t.Errorf("the identity was %v and is %v", identity, again)
	}
	if verbs := writes(client); slices.ContainsFunc(verbs, func(verb string) bool { return strings.HasPrefix(verb, "update") }) {
		t.Errorf("written although nothing had changed: %v", verbs)
	}
}

func TestEnsureRepairsAndKeeps(t *testing.T) {
	aggregated := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:project-member",
			Labels: map[string]string{"mine": "yes", "gardener.cloud/role": "wrong"}},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, Resources: []string{"aggregated"}}},
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
	client := fake.NewSimpleDynamicClient(scheme, aggregated, weakened, old)
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
	if rules, _, _ := unstructured.NestedSlice(get(t, client, clusterRoles, "", weakened.Name).Object, "rules"); strings.Contains(
		fmt.Sprint(rules), "*") {
		t.Errorf("the changed rules are still %v", rules)
	}
	data, _, _ := unstructured.NestedStringMap(get(t, client, configMaps, old.Namespace, old.Name).Object, "data")
	if data["gardenerAPIServer"] != "version: v2.0.0\n" || data["other"] != "kept" {
		t.Errorf("gardener-info is %v", data)
	}
}

func TestSetUpWaitsForNamespacesAndSaysWhatFailed(t *testing.T) {
	client := fake.NewSimpleDynamicClient(scheme)
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
	client = fake.NewSimpleDynamicClient(scheme)
	client.PrependReactor("create", "clusterrolebindings",
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
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

// recorder is an applier that records the objects.
type recorder struct{ names []string }

func (r *recorder) All(_ context.Context, objects []manifest.Object) error {
	for _, obj := range objects {
		r.names = append(r.names, obj.GetKind()+" "+obj.GetName())
	}
	return nil
}

func TestDefaultLandscapeOnce(t *testing.T) {
	r := &recorder{}
	client := kubefake.NewClientset()
	if err := defaultLandscape(t.Context(), client, r); err != nil {
		t.Fatal(err)
	}
	if len(r.names) < 6 {
		t.Errorf("applied only %v", r.names)
	}
	deployment := slices.Index(r.names, "ControllerDeployment provider-local")
	registration := slices.Index(r.names, "ControllerRegistration provider-local")
	if deployment < 0 || deployment > registration {
		t.Errorf("the ControllerRegistration, which names the ControllerDeployment, is refused before it: %v", r.names)
	}
	r.names = nil
	if err := defaultLandscape(t.Context(), client, r); err != nil || len(r.names) > 0 {
		t.Errorf("applied again: %v, error %v", r.names, err)
	}
}
