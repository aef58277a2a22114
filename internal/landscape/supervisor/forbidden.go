package supervisor

import (
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// CountForbidden has the status say how often a component was forbidden something: it has too few rights then, or asks
// for what it does not need.
func (s *Supervisor) CountForbidden(component string, config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &refusals{next: next, refused: func(r *http.Request) {
			klog.Background().Info("A component was forbidden something", "component", component, "method", r.Method, "path",
				r.URL.Path, "query", r.URL.RawQuery)
			s.Status.CountForbidden(component)
		}}
	})
}

// refusals tells of every response that says that something is forbidden.
type refusals struct {
	next    http.RoundTripper
	refused func(*http.Request)
}

// RoundTrip sends the request.
func (t *refusals) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusForbidden {
		t.refused(r)
	}
	return response, err
}

// WrappedRoundTripper lets idle connections be closed behind it.
func (t *refusals) WrappedRoundTripper() http.RoundTripper { return t.next }
