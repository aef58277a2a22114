package seedhost

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestProxyRefuses: the proxy connects to nothing but API servers of shoots that run.
func TestProxyRefuses(t *testing.T) {
	p, err := (&Host{}).StartProxy(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, target := range []string{"127.0.0.1:22", "localhost:443", "example.org:443", "kube-apiserver.shoot--dev--one.svc:443",
		"kube-apiserver.shoot--dev--one.svc:22", "kube-apiserver.127.0.0.1:443", "kube-apiserver..svc:443", "x:443", ""} {
		w := httptest.NewRecorder()
		p.serve(w, &http.Request{Method: http.MethodConnect, Host: target})
		if w.Code != http.StatusForbidden {
			t.Errorf("%q: code %d", target, w.Code)
		}
	}
	w := httptest.NewRecorder()
	p.serve(w, httptest.NewRequest(http.MethodGet, "http://kube-apiserver.shoot--dev--one.svc:443/", nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("GET: code %d", w.Code)
	}
}
