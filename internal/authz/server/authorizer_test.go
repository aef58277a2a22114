package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// slowGraph has an object only after it has been asked a few times.
type slowGraph struct{ asked, until int32 }

func (s *slowGraph) seen(_ graph.Kind, version string) bool {
	return version != "7" || atomic.AddInt32(&s.asked, 1) > s.until
}

func TestWaitForGraph(t *testing.T) {
	const never = 1 << 30
	bucket := k8sauthorizer.AttributesRecord{Verb: "patch", APIGroup: "core.gardener.cloud", Resource: "backupbuckets",
		Name: "b", ResourceRequest: true}
	secret := k8sauthorizer.AttributesRecord{Verb: "get", Resource: "secrets", Namespace: "garden", Name: "s", ResourceRequest: true}
	list := bucket
	list.Verb, list.Name = "list", ""
	for name, test := range map[string]struct {
		attrs   k8sauthorizer.AttributesRecord
		version string
		fails   error
		after   int32 // how often the graph is asked until it has the object
		budget  int
		asked   int // how often the authorizer is asked
		looked  int // how often the garden is read
	}{
		"seen later":                     {attrs: bucket, version: "7", after: 3, budget: 1, asked: 2, looked: 1},
		"seen meanwhile":                 {attrs: bucket, version: "7", budget: 1, asked: 2, looked: 1},
		"there is no such object":        {attrs: bucket, after: never, budget: 1, asked: 1, looked: 1},
		"the garden does not answer":     {attrs: bucket, fails: errors.New("no"), after: never, budget: 1, asked: 1, looked: 1},
		"too many of them":               {attrs: bucket, version: "7", after: 3, budget: 0, asked: 1},
		"a kind that the graph is given": {attrs: secret, version: "7", after: 3, budget: 1, asked: 1},
		"no object in particular":        {attrs: list, version: "7", after: 3, budget: 1, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked, looked := 0, 0
			g := &slowGraph{until: test.after}
			p := waitForGraph(k8sauthorizer.AuthorizerFunc(func(context.Context, k8sauthorizer.Attributes) (k8sauthorizer.Decision, string, error) {
				if asked++; asked == 1 {
					return k8sauthorizer.DecisionNoOpinion, "no path", nil
				}
				return k8sauthorizer.DecisionAllow, "", nil
			}), g.seen, nil)
			p.limit = rate.NewLimiter(0, test.budget)
			p.version = func(_ context.Context, resource schema.GroupVersionResource, _, _ string) (string, error) {
				if looked++; resource.Version != "v1beta1" {
					t.Errorf("looked for %s", resource)
				}
				return test.version, test.fails
			}
			decision, _, err := p.Authorize(t.Context(), test.attrs)
			if err != nil || (decision == k8sauthorizer.DecisionAllow) != (test.asked == 2) || asked != test.asked || looked != test.looked {
				t.Errorf("decision %v, error %v; asked %d times, looked %d times", decision, err, asked, looked)
			}
		})
	}
}

// TestWaitForGraphEnds checks that a request does not wait beyond its own deadline.
func TestWaitForGraphEnds(t *testing.T) {
	refuse := k8sauthorizer.AuthorizerFunc(func(context.Context, k8sauthorizer.Attributes) (k8sauthorizer.Decision, string, error) {
		return k8sauthorizer.DecisionNoOpinion, "no path", nil
	})
	p := waitForGraph(refuse, func(graph.Kind, string) bool { return false }, nil)
	ctx, cancel := context.WithCancel(t.Context())
	p.version = func(context.Context, schema.GroupVersionResource, string, string) (string, error) {
		cancel()
		return "7", nil
	}
	decision, reason, err := p.Authorize(ctx, k8sauthorizer.AttributesRecord{Verb: "patch", APIGroup: "core.gardener.cloud",
		Resource: "backupbuckets", Name: "b", ResourceRequest: true})
	if decision != k8sauthorizer.DecisionNoOpinion || reason != "no path" || err != nil {
		t.Errorf("%v, %s, %v", decision, reason, err)
	}
}
