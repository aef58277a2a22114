package kubecontrollers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// TestServiceAccounts holds the identities to Kubernetes' own policy: with another name a controller may do nothing.
func TestServiceAccounts(t *testing.T) {
	var subjects []rbacv1.Subject
	for _, binding := range bootstrappolicy.ControllerRoleBindings() {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			subjects = append(subjects, binding.Subjects...)
		}
	}
	bound := sets.New[string]()
	for _, subject := range subjects {
		bound.Insert(subject.Namespace + "/" + subject.Name)
	}
	for _, entry := range table {
		if entry.serviceAccount != "" && !bound.Has("kube-system/"+entry.serviceAccount) {
			t.Errorf("%s: Kubernetes binds no role to the service account %s", entry.name, entry.serviceAccount)
		}
	}
}

// discoveryServer serves an empty group whose name can be changed, and counts whole answers.
type discoveryServer struct {
	group  atomic.Value
	status atomic.Int32
	whole  atomic.Int32
}

func (s *discoveryServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := s.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		return
	}
	group := s.group.Load().(string)
	if r.URL.Path == "/api" {
		group = ""
	}
	tag := fmt.Sprintf("%q", "tag of "+group)
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.whole.Add(1)
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	resource := func(name, scope string) string {
		return fmt.Sprintf(`{"resource":%q,"scope":%q,"responseKind":{"kind":"K"},"verbs":["delete","list"]}`, name, scope)
	}
	_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":%q},"versions":[{"version":"v1","resources":[%s,%s]}]}]}`,
		group, resource("shoots", "Namespaced"), resource("seeds", "Cluster"))
}

func TestFreshDiscovery(t *testing.T) {
	server := &discoveryServer{}
	server.group.Store("one.example.com")
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: listener.URL})
	d := &freshDiscovery{client: client.Discovery(), http: listener.Client()}

	describe := func(lists []*metav1.APIResourceList, err error) string {
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, list := range lists {
			for _, resource := range list.APIResources {
				all = append(all, list.GroupVersion+"/"+resource.Name)
			}
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	const first = "one.example.com/v1/seeds one.example.com/v1/shoots v1/seeds v1/shoots"
	if got := describe(d.ServerPreferredResources()); got != first {
		t.Errorf("discovered %s", got)
	}
	whole := server.whole.Load()
	for range 3 {
		if got := describe(d.ServerPreferredResources()); got != first {
			t.Errorf("discovered %s when nothing had changed", got)
		}
	}
	if got := describe(d.ServerPreferredNamespacedResources()); got != "one.example.com/v1/shoots v1/shoots" {
		t.Errorf("discovered %s in namespaces", got)
	}
	if got := server.whole.Load(); got != whole {
		t.Errorf("%d whole answers although nothing had changed", got-whole)
	}

	server.group.Store("two.example.com")
	if got := describe(d.ServerPreferredResources()); !strings.Contains(got, "two.example.com/v1/shoots") {
		t.Errorf("discovered %s after a change", got)
	}
	server.status.Store(http.StatusForbidden)
	if got := describe(d.ServerPreferredResources()); !strings.Contains(got, "403") {
		t.Errorf("discovered %s although that is forbidden", got)
	}
	server.status.Store(0)
	if got := describe(d.ServerPreferredResources()); !strings.Contains(got, "two.example.com/v1/shoots") {
		t.Errorf("discovered %s after a failure", got)
	}
}

func TestOnlyMetadataOfMostResources(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	informers := newSharedInformers(&client{Interface: kubernetes.NewForConfigOrDie(config), metadata: metadata.NewForConfigOrDie(config)})
	for resource, inFull := range map[schema.GroupVersionResource]bool{
		{Version: "v1", Resource: "pods"}:                                          true,
		{Version: "v1", Resource: "namespaces"}:                                    true,
		{Version: "v1", Resource: "secrets"}:                                       false,
		{Version: "v1", Resource: "configmaps"}:                                    false,
		{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}:     false,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}:     false,
		{Group: "apps", Version: "v1", Resource: "deployments"}:                    false,
		{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}:      true,
		{Group: "operations.gardener.cloud", Version: "v1", Resource: "not-there"}: false,
	} {
		informer, err := informers.ForResource(resource)
		if err != nil {
			t.Fatal(err)
		}
		if onlyMetadata := informer.Informer() == informers.metadata.ForResource(resource).Informer(); onlyMetadata == inFull {
			t.Errorf("%s: whole objects: %t, want %t", resource, !onlyMetadata, inFull)
		}
	}
}

func TestTransforms(t *testing.T) {
	object := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}}
	if _, err := dropManagedFields(&object); err != nil || len(object.ManagedFields) > 0 || len(object.Labels) == 0 || len(object.Annotations) == 0 {
		t.Errorf("%v is left of an object, error %v", object.ObjectMeta, err)
	}
	if _, err := dropUnowned(&object); err != nil || len(object.Labels)+len(object.Annotations) > 0 || len(object.OwnerReferences) == 0 || len(object.Finalizers) == 0 {
		t.Errorf("%v is left of metadata, error %v", object.ObjectMeta, err)
	}
	for name, transform := range map[string]func(any) (any, error){"dropManagedFields": dropManagedFields, "dropUnowned": dropUnowned} {
		if got, err := transform("no object"); got != "no object" || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
