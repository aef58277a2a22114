package kubecontrollers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// discoveryServer serves an empty group whose name can be changed, and counts the answers with a body.
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
	_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2",`+
		`"items":[{"metadata":{"name":%q},"versions":[{"version":"v1","resources":[%s,%s]}]}]}`,
		group, resource("shoots", "Namespaced"), resource("seeds", "Cluster"))
}

func TestFreshDiscovery(t *testing.T) {
	server := &discoveryServer{}
	server.group.Store("one.example.com")
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: listener.URL})
	d := &freshDiscovery{DiscoveryInterface: client.Discovery(), http: listener.Client()}

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
