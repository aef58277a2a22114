package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/examples/stacks/internal/sample"
)

// start serves sites until the test ends.
func start(t *testing.T, version string) *sites {
	t.Helper()
	s, err := newSites(version)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask sends a request, and returns the status code and the page.
func ask(t *testing.T, method, address, host string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestPages(t *testing.T) {
	for name, test := range map[string]struct {
		version   string
		site      site
		has, lack string
	}{
		"0.1 has no themes": {"0.1", site{Title: "News", Theme: "dark"}, "stack 0.1", "dark"},
		"0.2 has themes":    {"0.2", site{Title: "News", Theme: "dark"}, "Theme: dark", "stack 0.1"},
		"no title":          {"0.2", site{}, "<h1>blog</h1>", "Theme"},
		"database":          {"0.2", site{Endpoint: "a.example.org:3306"}, "a.example.org:3306", "Theme"},
		"a script as title": {"0.2", site{Title: "<script>alert(1)</script>"}, "&lt;script&gt;", "<script"},
		"a very long title": {"0.2", site{Title: strings.Repeat("é", 1<<20)}, strings.Repeat("é", maxText) + "…",
			strings.Repeat("é", maxText+1)},
		"an attribute broken": {"0.2", site{Theme: `"><img src=x>`}, "&#34;&gt;", "<img"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, test.version)
			code, body := ask(t, http.MethodGet, s.serve("blog", test.site), "")
			if code != http.StatusOK || !strings.Contains(body, test.has) || strings.Contains(body, test.lack) {
				t.Errorf("%d %.2000s", code, body)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	s := start(t, "0.1")
	address := s.serve("blog", site{})
	for name, test := range map[string]struct {
		method, address, host string
		code                  int
	}{
		"the site":       {http.MethodGet, address, "", http.StatusOK},
		"another site":   {http.MethodGet, address + "2", "", http.StatusNotFound},
		"below the site": {http.MethodGet, address + "/x", "", http.StatusNotFound},
		"another host":   {http.MethodGet, address, "evil.example.org", http.StatusMisdirectedRequest},
		"another method": {http.MethodPost, address, "", http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			if code, body := ask(t, test.method, test.address, test.host); code != test.code {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	s.remove("blog")
	if code, _ := ask(t, http.MethodGet, address, ""); code != http.StatusNotFound {
		t.Errorf("a deleted site is served: %d", code)
	}
}

// TestLifeOfInstance: a site claims a database, waits for it, is served, and goes.
func TestLifeOfInstance(t *testing.T) {
	instance := sample.Object(group, instanceKind)
	instance.SetNamespace("dev")
	instance.SetName("blog")
	instance.SetUID("1234")
	claim := sample.Object(sample.DatabaseGroup, claimKind)
	c := fake.NewClientBuilder().WithObjects(instance).WithStatusSubresource(instance, claim).Build()
	s := start(t, "0.2")
	key := client.ObjectKeyFromObject(instance)
	expect := func(phase, message string) *unstructured.Unstructured {
		t.Helper()
		if _, err := (&reconciler{c, s}).Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		got := sample.Object(group, instanceKind)
		if err := c.Get(t.Context(), key, got); err != nil {
			t.Fatal(err)
		}
		if sample.String(got, "status", "phase") != phase || !strings.Contains(sample.String(got, "status", "message"), message) {
			t.Errorf("the status is %v, not %s: %s", got.Object["status"], phase, message)
		}
		return got
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("Pending", "waits for MySQLInstance blog")
	do(c.Get(t.Context(), key, claim))
	if !metav1.IsControlledBy(claim, instance) {
		t.Errorf("the claim has the owners %v", claim.GetOwnerReferences())
	}
	claim.Object["status"] = map[string]any{"phase": "Ready"}
	do(c.Status().Update(t.Context(), claim))
	expect("Pending", "waits for the Secret blog")
	do(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "blog"},
		Data: map[string][]byte{"endpoint": []byte("db.example.org"), "port": []byte("3306")}}))
	address := sample.String(expect("Ready", "version 0.2"), "status", "address")
	if code, body := ask(t, http.MethodGet, address, ""); code != http.StatusOK || !strings.Contains(body, "db.example.org:3306") {
		t.Errorf("%d %s", code, body)
	}
	claim.Object["status"] = map[string]any{"phase": "Pending", "message": "no credentials"}
	do(c.Status().Update(t.Context(), claim))
	if got := expect("Pending", "no credentials"); sample.String(got, "status", "address") != "" {
		t.Errorf("the address stays: %v", got.Object["status"])
	}
}

// TestClaimOfOthers: a claim that is there already is not taken.
func TestClaimOfOthers(t *testing.T) {
	instance, claim := sample.Object(group, instanceKind), sample.Object(sample.DatabaseGroup, claimKind)
	for _, o := range []*unstructured.Unstructured{instance, claim} {
		o.SetNamespace("dev")
		o.SetName("blog")
	}
	instance.SetUID("1234")
	c := fake.NewClientBuilder().WithObjects(instance, claim).WithStatusSubresource(instance).Build()
	if _, err := (&reconciler{c, start(t, "0.1")}).Reconcile(
		t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(instance)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(instance), instance); err != nil ||
		!strings.Contains(sample.String(instance, "status", "message"), "exists already") {
		t.Errorf("%v, %v", instance.Object, err)
	}
}
