package controlplane

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gardenlite/gardenlite/internal/garbage"
)

// crowd is how many requests at a time are many. Ten shoots that are made at a time have fewer; with 32 each of them took a
// fifth more memory for good.
const crowd = 100

// answering counts the requests of all API servers of the process that have come and have no answer yet, without watches.
var answering atomic.Int64

// withCrowd lets garbage lie while there are many requests. It stands before everything else, where some may wait.
func withCrowd(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "watch=") {
			handler.ServeHTTP(w, r)
			return
		}
		if answering.Add(1) >= crowd {
			garbage.Crowd()
		}
		defer answering.Add(-1)
		handler.ServeHTTP(w, r)
	})
}
