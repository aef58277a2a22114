package supervisor

import (
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// CountForbidden counts the forbidden requests of a component in the status: the component has too few rights, or
// requests what it does not need.
func (s *Supervisor) CountForbidden(component string, config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &refusals{next: next, refused: func(r *http.Request) {
			klog.Background().Info("A component was forbidden something", "component", component, "method", r.Method, "path",
				r.URL.Path, "query", r.URL.RawQuery)
			s.Status.CountForbidden(component)
		}}
	})
}

// refusals is a RoundTripper that reports each response with the status 403.
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

// WrappedRoundTripper returns the wrapped RoundTripper, so that its idle connections can be closed.
func (t *refusals) WrappedRoundTripper() http.RoundTripper { return t.next }
