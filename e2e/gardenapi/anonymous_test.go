package gardenapi

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestAnonymous sends requests without credentials: only those that Kubernetes' own RBAC allows everybody are
// answered.
func TestAnonymous(t *testing.T) {
	anonymous := rest.AnonymousClientConfig(config)
	httpClient, err := rest.HTTPClientFor(anonymous)
	must(t, err)
	status := func(method, path string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, strings.NewReader("{}"))
		must(t, err)
		response, err := httpClient.Do(request)
		must(t, err)
		must(t, response.Body.Close())
		return response.StatusCode
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/version"} {
		if code := status(http.MethodGet, path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
	paths := []string{"/", "/api", "/apis", "/metrics", "/openapi/v2", "/openapi/v3", "/logs/", "/debug/pprof/",
		"/debug/pprof/heap", "/configz",
		"/api/v1/secrets", "/api/v1/namespaces", "/apis/core.gardener.cloud/v1beta1"}
	for _, r := range gardenResources {
		paths = append(paths, "/apis/"+r.gvr.GroupVersion().String()+"/"+r.gvr.Resource)
	}
	for _, path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if code := status(method, path); code != http.StatusForbidden && code != http.StatusUnauthorized {
				t.Errorf("%s %s: %d", method, path, code)
			}
		}
	}
}
