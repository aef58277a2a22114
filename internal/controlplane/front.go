package controlplane

import (
	"net/http"
	"sync/atomic"

	"github.com/gardenlite/gardenlite/internal/garbage"
)

// Fronted is an Extension that sees requests to the API server before anybody else does.
type Fronted interface {
	// Front makes what stands in front of all filters. Nobody has been authenticated there.
	Front(http.Handler) http.Handler
}

// posting counts the requests in front of the filters that make something: those that wait there are not in withCrowd's count.
var posting atomic.Int64

// withFront puts what an Extension has in front of the filters there.
func withFront(ext Extension, filters http.Handler) http.Handler {
	fronted, ok := ext.(Fronted)
	if !ok {
		return filters
	}
	front := fronted.Front(filters)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if posting.Add(1) >= crowd {
				garbage.Crowd()
			}
			defer posting.Add(-1)
		}
		front.ServeHTTP(w, r)
	})
}
