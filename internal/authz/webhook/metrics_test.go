package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

func TestMetrics(t *testing.T) {
	metrics := NewMetrics()
	g := exampleGraph()
	measured := metrics.Measure(g)
	s := serve(t, func(c *Config) {
		c.Metrics = metrics
		c.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if measured.HasPath(graph.Vertex{Kind: graph.KindShoot, Namespace: a.GetNamespace(), Name: a.GetName()}, "local") {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "no path", nil
		})
	})
	metrics.ObserveUpdate(graph.KindShoot, "Set", time.Microsecond)
	s.post(AuthorizationPath, exampleReview)
	s.post(AuthorizationPath, strings.Replace(exampleReview, `"name":"a"`, `"name":"c"`, 1))
	s.post(AuthorizationPath, strings.Replace(exampleReview, `"shoots"`, `"made up"`, 1))
	s.post(AuthorizationPath, `{}`)
	s.post(RestrictionPath, exampleAdmission)
	metrics.Rejected(&admissionv1.AdmissionRequest{Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Kind: "Secret"},
		Namespace: "garden-dev"}, "Size Exceeded")
	_, answer := s.get(MetricsPath)
	const prefix = "gardener_admission_controller_"
	for _, want := range []string{
		prefix + `seed_authorizer_graph_update_duration_seconds_count{kind="Shoot",operation="Set"} 1`,
		prefix + `seed_authorizer_graph_path_check_duration_seconds_count{fromKind="Shoot",toKind="Seed"} 3`,
		prefix + `seed_authorizer_decisions_total{decision="allow",resource="shoots",userType="gardenlet",verb="list"} 1`,
		prefix + `seed_authorizer_decisions_total{decision="no-opinion",resource="shoots",userType="gardenlet",verb="list"} 1`,
		prefix + `seed_authorizer_decisions_total{decision="allow",resource="other",userType="gardenlet",verb="list"} 1`,
		prefix + `seed_restriction_decisions_total{decision="allow",operation="CREATE",resource="secrets",userType="gardenlet"} 1`,
		prefix + `webhook_failed_requests_total{code="400",path="` + AuthorizationPath + `"} 1`,
		prefix + `seed_authorizer_graph_synced 1`,
		prefix + `rejected_resources_total{kind="Secret",namespace="garden-dev",operation="CREATE",reason="Size Exceeded"} 1`,
	} {
		if !strings.Contains(answer, want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	if t.Failed() {
		t.Log(answer)
	}
}

// TestMetricsStaySmall checks that arbitrary values of a client do not become labels.
func TestMetricsStaySmall(t *testing.T) {
	s := serve(t, nil)
	for i := range 50 {
		s.post(AuthorizationPath,
			strings.NewReplacer(`"shoots"`, fmt.Sprintf(`"r%d"`, i), `"list"`, fmt.Sprintf(`"v%d"`, i)).Replace(exampleReview))
	}
	_, answer := s.get(MetricsPath)
	if n := strings.Count(answer, "seed_authorizer_decisions_total{"); n != 1 {
		t.Errorf("%d decision counters", n)
	}
}

func BenchmarkMeasuredPathCheck(b *testing.B) {
	g := NewMetrics().Measure(exampleGraph())
	b.ReportAllocs()
	for b.Loop() {
		g.HasPath(graph.Vertex{Kind: graph.KindCloudProfile, Name: "local"}, "local")
	}
}
