package webhook

import (
	"fmt"
	"net/http"
)

// How many requests are worked on at a time, unless the configuration says otherwise. An API server has 600 requests in
// flight by default, and watches beside them: so an authorization is turned away only when something is wrong. Those on
// admission may be large, and read from the garden; an API server has 200 that change something.
const (
	defaultAuthorizations = 1024
	defaultAdmissions     = 256
)

// limited turns requests away, before they are read, while as many are worked on as may be. The API server's client tries
// again when it is told so, within the time it has.
func (s *Server) limited(path string, limit int, next http.HandlerFunc) http.HandlerFunc {
	working := make(chan struct{}, limit)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case working <- struct{}{}:
			defer func() { <-working }()
			next(w, r)
		default:
			s.metrics.failure(path, http.StatusTooManyRequests)
			w.Header().Set("Retry-After", "1")
			writeText(w, http.StatusTooManyRequests, fmt.Sprintf("%d requests are being worked on already", limit))
		}
	}
}
