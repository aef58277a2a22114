package controllermanager

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

func TestNames(t *testing.T) {
	names := Names()
	for _, want := range []string{"project", "shoot-maintenance", "shoot-hibernation", "cloudprofile", "namespacedcloudprofile",
		"secretbinding", "credentialsbinding", "exposureclass", "quota", "controllerdeployment", "csr-autoapprove", "bastion"} {
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

// TestStops checks that a manager whose garden refuses every request ends with its context.
func TestStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	garden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
		cancel() // the manager has started
	}))
	defer garden.Close()
	m, err := New(Config{REST: &rest.Config{Host: garden.URL}})
	if err != nil || ctx.Err() != nil {
		t.Fatalf("%v; before it runs its context says %v", err, ctx.Err())
	}
	if err := m.Run(ctx); err != nil {
		t.Error(err)
	}
	if ctx.Err() == nil {
		t.Error("it sent no request")
	}
}
