package controlplane

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
)

// withReviewedWatches authorizes watches of a single object periodically, and ends those that are no longer allowed: an
// API server authorizes a watch only at its start, and a watch can last for hours. Authorizers that decide by objects,
// such as Gardener's SeedAuthorizer, may have changed their decision by then.
//
// revocation returns a function that reports whether the client certificate of a request has been revoked, nil for clients
// whose certificates are not; watches of revoked clients end, also those of many objects.
func withReviewedWatches(next http.Handler, a authorizer.Authorizer, every time.Duration, clock clock.WithTicker,
	revocation func(*http.Request) func() bool) http.Handler {
	if every <= 0 || a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		var revoked func() bool
		if ok && info.Verb == "watch" && revocation != nil {
			revoked = revocation(r)
		}
		if !ok || info.Verb != "watch" || info.Name == "" && revoked == nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		var review sync.WaitGroup
		review.Go(func() {
			defer cancel()
			reviewUntilRefused(ctx, a, every, clock, revoked, info.Name != "")
		})
		defer review.Wait()
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// reviewUntilRefused returns when the request of the context has ended, or is no longer allowed.
func reviewUntilRefused(ctx context.Context, a authorizer.Authorizer, every time.Duration, clock clock.WithTicker,
	revoked func() bool, authorize bool) {
	ticker := clock.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if revoked != nil && revoked() {
			return
		}
		if !authorize {
			continue
		}
		attributes, err := genericapifilters.GetAuthorizerAttributes(ctx)
		if err != nil {
			return
		}
		if decision, _, err := a.Authorize(ctx, attributes); err != nil || decision != authorizer.DecisionAllow {
			return
		}
	}
}
