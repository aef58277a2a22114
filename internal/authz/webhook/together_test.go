package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

func reviewOf(seed, verb, resource, namespace, name string) string {
	return fmt.Sprintf(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"gardener.cloud:system:seed:%s",
"groups":["gardener.cloud:system:seeds"],"resourceAttributes":{"verb":%q,"resource":%q,"namespace":%q,"name":%q,"version":"v1"}}}`,
		seed, verb, resource, namespace, name)
}

// TestAuthorizationTogether tests the webhook with the real authorizer and the real graph.
func TestAuthorizationTogether(t *testing.T) {
	metrics, g := NewMetrics(), exampleGraph()
	s := serve(t, func(c *Config) {
		c.Metrics, c.Graph = metrics, g
		c.Authorizer = authorizer.New(metrics.Measure(g), authorizer.ReadsSeed)
	})
	ask := func(body string) authorizationv1.SubjectAccessReviewStatus {
		t.Helper()
		_, answer := s.post(AuthorizationPath, body)
		var review authorizationv1.SubjectAccessReview
		if err := json.Unmarshal([]byte(answer), &review); err != nil {
			t.Fatalf("%q: %v", answer, err)
		}
		return review.Status
	}
	own := reviewOf("local", "get", "secrets", "garden-dev", "a.ca-cluster")
	for _, test := range []struct {
		what, body string
		allowed    bool
	}{
		{"a secret of a shoot on the seed", own, true},
		{"the same for another seed", reviewOf("other", "get", "secrets", "garden-dev", "a.ca-cluster"), false},
		{"another secret", reviewOf("local", "get", "secrets", "garden-dev", "x"), false},
		{"all secrets", reviewOf("local", "list", "secrets", "garden-dev", ""), false},
		{"not of the group", strings.Replace(own, "gardener.cloud:system:seeds", "system:authenticated", 1), false},
	} {
		status := ask(test.body)
		if status.Allowed != test.allowed || status.Denied || status.Reason == "" || strings.ContainsAny(status.Reason, "\n\r") {
			t.Errorf("%s: %+v, want allowed: %v", test.what, status, test.allowed)
		}
	}
	g.Delete(graph.Vertex{Kind: graph.KindShoot, Namespace: "garden-dev", Name: "a"})
	if status := ask(own); status.Allowed {
		t.Errorf("the secret is still allowed after its shoot is gone: %+v", status)
	}
}

// BenchmarkRoundTrip measures an authorization by an API server, over TLS and an open connection.
func BenchmarkRoundTrip(b *testing.B) {
	metrics, g := NewMetrics(), exampleGraph()
	s := serve(b, func(c *Config) {
		c.Metrics, c.Graph = metrics, g
		c.Authorizer = authorizer.New(metrics.Measure(g), authorizer.ReadsSeed)
	})
	var durations []time.Duration
	body := reviewOf("local", "get", "secrets", "garden-dev", "a.ca-cluster")
	for b.Loop() {
		start := time.Now()
		response, err := s.client.Post(s.url+AuthorizationPath, mediaTypeJSON, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			b.Fatal(response.Status)
		}
		durations = append(durations, time.Since(start))
	}
	slices.Sort(durations)
	b.ReportMetric(float64(durations[len(durations)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(durations[len(durations)*99/100].Microseconds()), "µs-p99")
}
