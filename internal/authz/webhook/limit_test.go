package webhook

import (
	"context"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

type brokenGraph struct{}

func (brokenGraph) Snapshot() graph.Snapshot { panic("of a test") }

// TestConcurrentRequestsAreLimited checks that requests beyond the limit are refused immediately, independently of the
// other webhook, and that requests are accepted again afterwards.
func TestConcurrentRequestsAreLimited(t *testing.T) {
	const limit = 3
	entered, leave := make(chan struct{}, limit), make(chan struct{})
	hold := func() { entered <- struct{}{}; <-leave }
	s := serve(t, func(c *Config) {
		c.MaxAuthorizations, c.MaxAdmissions = limit, limit
		c.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			hold()
			return authorizer.DecisionAllow, "", nil
		})
		c.Restriction = restrictionFunc(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { hold(); return admitAll(r) })
	})
	for path, body := range map[string]string{AuthorizationPath: exampleReview, RestrictionPath: exampleAdmission} {
		statuses := make(chan int, limit)
		for range limit {
			go func() {
				status, _ := s.post(path, body)
				statuses <- status
			}()
			<-entered
		}
		status, answer, header := s.do(http.MethodPost, path, mediaTypeJSON, body)
		if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" || strings.Contains(answer, "allowed") {
			t.Errorf("POST %s beyond the limit: %d %q", path, status, answer)
		}
		if status, _ := s.get(ReadyPath); status != http.StatusOK {
			t.Errorf("ready meanwhile: %d", status)
		}
		for range limit {
			leave <- struct{}{}
			if status := <-statuses; status != http.StatusOK {
				t.Errorf("POST %s within the limit: %d", path, status)
			}
		}
		go func() {
			status, _ := s.post(path, body)
			statuses <- status
		}()
		<-entered
		leave <- struct{}{}
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("POST %s afterwards: %d", path, status)
		}
	}
	if _, metrics := s.get(MetricsPath); !strings.Contains(metrics, `failed_requests_total{code="429",path="`+AuthorizationPath+`"} 1`) {
		t.Error("what is turned away is not counted")
	}
}

// TestLimitSurvivesPanics checks that a panic does not use up a slot.
func TestLimitSurvivesPanics(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.MaxAuthorizations = 1
		c.Authorizer = authorizer.AuthorizerFunc(
			func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) { panic("of a test") })
	})
	for range 3 {
		if status, _ := s.post(AuthorizationPath, exampleReview); status != http.StatusInternalServerError {
			t.Errorf("got %d", status)
		}
	}
}
