package probe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func serve(t *testing.T, handler http.HandlerFunc) (*Server, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	probe, err := New(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return probe, server
}

func TestReadyAndHealthy(t *testing.T) {
	for _, test := range []struct {
		code         int
		answer, want string
	}{
		{http.StatusOK, "ok", ""},
		{http.StatusInternalServerError, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed\nreadyz check failed",
			"answers /readyz with 500: etcd, informer-sync"},
		{http.StatusForbidden, "no", "answers /readyz with 403"},
		{http.StatusNoContent, "", "answers /readyz with 204"},
	} {
		probe, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				return
			}
			w.WriteHeader(test.code)
			_, _ = fmt.Fprint(w, test.answer)
		})
		err := probe.Ready(t.Context())
		if (err == nil) != (test.want == "") || err != nil && !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%d: %v, want %q", test.code, err, test.want)
		}
		if err := probe.Healthy(t.Context()); err != nil {
			t.Errorf("%d: healthy: %v", test.code, err)
		}
	}
}

func TestNoListener(t *testing.T) {
	probe, server := serve(t, nil)
	server.Close()
	if err := probe.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "asking the API server for /healthz") {
		t.Errorf("healthy: %v", err)
	}
	if _, err := probe.Version(t.Context()); err == nil {
		t.Error("it has a version")
	}
	if _, err := probe.Resources(t.Context()); err == nil {
		t.Error("it has resources")
	}
}

func TestVersionAndResources(t *testing.T) {
	probe, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, map[string]string{
			"/version":     `{"gitVersion":"v1.36.4"}`,
			"/api":         `{"kind":"APIVersions","versions":["v1"]}`,
			"/api/v1":      `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods"}]}`,
			"/apis":        `{"kind":"APIGroupList","groups":[{"name":"g.x","versions":[{"groupVersion":"g.x/v2","version":"v2"}]}]}`,
			"/apis/g.x":    `{}`,
			"/apis/g.x/v2": `{"kind":"APIResourceList","groupVersion":"g.x/v2","resources":[{"name":"things"},{"name":"things/status"}]}`,
		}[r.URL.Path])
	})
	if version, err := probe.Version(t.Context()); err != nil || version != "v1.36.4" {
		t.Errorf("version %q, %v", version, err)
	}
	resources, err := probe.Resources(t.Context())
	if err != nil || !resources.Has("things.g.x") || resources.Has("pods.") {
		t.Errorf("resources %v, %v", resources, err)
	}
}
