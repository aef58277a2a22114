package controllermanager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestNames(t *testing.T) {
	names := Names()
	for _, want := range []string{"project", "shoot-maintenance", "shoot-hibernation", "cloudprofile", "namespacedcloudprofile", "secretbinding", "credentialsbinding", "exposureclass", "quota", "controllerdeployment", "csr-autoapprove", "bastion"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a name is there twice: %v", names)
	}
}

func TestNeedsClientConfiguration(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("no error")
	}
}

// TestStops: a manager whose garden refuses everything ends with its context.
func TestStops(t *testing.T) {
	garden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/apis") || strings.HasSuffix(r.URL.Path, "/api") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
			return
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer garden.Close()
	m, err := New(Config{REST: &rest.Config{Host: garden.URL}, Controllers: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
