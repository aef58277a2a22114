package controlplane

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestReviewedWatches checks that a watch of one object ends at the first review that does not allow it, and that other
// requests are not reviewed.
func TestReviewedWatches(t *testing.T) {
	for name, test := range map[string]struct {
		info     request.RequestInfo
		reviewed bool
	}{
		"watch of one object": {
			request.RequestInfo{IsResourceRequest: true, Verb: "watch", Resource: "secrets", Namespace: "a", Name: "x"}, true},
		"watch of all": {request.RequestInfo{IsResourceRequest: true, Verb: "watch", Resource: "secrets", Namespace: "a"}, false},
		"get":          {request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "a", Name: "x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var allowed atomic.Bool
			allowed.Store(true)
			reviews := make(chan string)
			review := authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				select {
				case reviews <- a.GetUser().GetName() + " " + a.GetVerb() + " " + a.GetNamespace() + "/" + a.GetName():
				case <-ctx.Done():
				}
				if allowed.Load() {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			})
			clock := testingclock.NewFakeClock(time.Now())
			ended := make(chan struct{})
			watch := withReviewedWatches(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if test.reviewed {
					<-r.Context().Done()
				}
			}), review, time.Second, clock, nil)
			ctx := request.WithRequestInfo(request.WithUser(t.Context(), &user.DefaultInfo{Name: "gardenlet"}), &test.info)
			go func() {
				defer close(ended)
				watch.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
			}()
			if !test.reviewed {
				<-ended
				return
			}
			for _, allow := range []bool{true, true, false} {
				allowed.Store(allow)
				testutil.Eventually(t, 10*time.Second, func(context.Context) error {
					if !clock.HasWaiters() {
						return context.DeadlineExceeded
					}
					return nil
				})
				clock.Step(time.Second)
				if got := <-reviews; got != "gardenlet watch a/x" {
					t.Errorf("reviewed %q", got)
				}
			}
			<-ended
		})
	}
}

// TestWatchesOfRevokedClientsEnd checks that a watch of many objects ends when its client's certificate is revoked.
func TestWatchesOfRevokedClientsEnd(t *testing.T) {
	var revoked atomic.Bool
	allow := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	clock := testingclock.NewFakeClock(time.Now())
	watch := withReviewedWatches(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), allow,
		time.Second, clock, func(*http.Request) func() bool { return revoked.Load })
	ctx := request.WithRequestInfo(request.WithUser(t.Context(), &user.DefaultInfo{Name: "gardenlet"}),
		&request.RequestInfo{IsResourceRequest: true, Verb: "watch", Resource: "secrets", Namespace: "seed-a"})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watch.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	}()
	testutil.Eventually(t, 10*time.Second, func(context.Context) error {
		if !clock.HasWaiters() {
			return context.DeadlineExceeded
		}
		return nil
	})
	clock.Step(time.Second)
	select {
	case <-ended:
		t.Fatal("the watch of a valid client has ended")
	case <-time.After(50 * time.Millisecond):
	}
	revoked.Store(true)
	clock.Step(time.Second)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the watch of a revoked client goes on")
	}
}
