package controlplane

import "net/http"

// Fronted is an Extension that sees requests to the API server before anybody else does.
type Fronted interface {
	// Front makes what stands in front of all filters. Nobody has been authenticated there.
	Front(http.Handler) http.Handler
}

// withFront puts what an Extension has in front of the filters there.
func withFront(ext Extension, filters http.Handler) http.Handler {
	if fronted, ok := ext.(Fronted); ok {
		return fronted.Front(filters)
	}
	return filters
}
