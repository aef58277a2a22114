// Package authorizer asks Gardener's SeedAuthorizer and gardenlite's about the same requests, and compares the answers. Gardener's
// watches the objects of the landscape of which gardenlite's is a part.
//
//	make conformance-authorizer
package authorizer

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/bench/harness"
	"github.com/gardenlite/gardenlite/conformance/result"
)

var (
	count = flag.Int("requests", 240_000, "how many requests to compare")
	from  = flag.Uint64("seed", 1, "which of the possible requests these are")
)

// shown is how many of the differences without a reason are printed.
const shown = 60

// TestAuthorizers compares the answers to requests of gardenlets and extensions.
func TestAuthorizers(t *testing.T) {
	w := newWorld(t)
	gardener := newGardener(t, w)
	requests := w.requests(rand.New(rand.NewPCG(*from, 0)), *count)
	differing := make([]*comparison, len(requests))
	var allowed atomic.Int64
	if err := harness.InParallel(t.Context(), 8, len(requests), func(ctx context.Context, i int) error {
		c := &comparison{request: requests[i], of: gardener}
		decision, _, err := gardener.Authorize(ctx, c.request)
		if err != nil {
			return err
		}
		c.gardener = decision == authorizer.DecisionAllow
		if c.gardenlite, err = w.authorize(ctx, c.request); err != nil {
			return err
		}
		if c.gardener && c.gardenlite {
			allowed.Add(1)
		}
		if c.gardener != c.gardenlite {
			differing[i] = c
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	differing = slices.DeleteFunc(differing, func(c *comparison) bool { return c == nil })
	unexplained := slices.DeleteFunc(slices.Clone(differing), (*comparison).explained)
	for _, c := range unexplained[:min(shown, len(unexplained))] {
		t.Error(c)
	}
	for _, d := range differences {
		t.Logf("%6d %s", d.explains, d.reason)
		if d.explains == 0 {
			t.Errorf("no answer differs any more because: %s", d.reason)
		}
	}
	result.Set(t, "%d requests: %d alike, of which %d are allowed; %d explained, %d unexplained",
		len(requests), len(requests)-len(differing), allowed.Load(), len(differing)-len(unexplained), len(unexplained))
}
