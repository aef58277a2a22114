package leastprivilege

import (
	"slices"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/manifests"
)

// TestEveryRightIsNeeded removes each right from each role in turn: either a recorded request is then refused, or
// unseenReasons tells why none was recorded.
func TestEveryRightIsNeeded(t *testing.T) {
	recorded, err := Recorded()
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]*policy{"garden": newPolicy(t, manifests.FS, "garden/rbac-*.yaml"),
		"seed": newPolicy(t, manifests.Seed, "seed/base/rbac.yaml")}
	for _, c := range Components() {
		t.Run(c.User, func(t *testing.T) {
			p := policies[c.Cluster]
			requests := withLists(slices.DeleteFunc(slices.Clone(recorded), func(r Request) bool { return r.Component != c }))
			if refused := p.refused(t, requests); len(refused) > 0 || len(requests) == 0 {
				t.Fatalf("of %d recorded requests, its roles do not allow %v", len(requests), refused)
			}
			unseen := p.unneeded(t, c, requests)
			for _, r := range unseen {
				if unseenReasons()[c.User][r] == "" {
					t.Errorf("without %s nothing fails: take it from the role, or have TestLeastPrivilege of e2e use it", r)
				}
			}
			for r := range unseenReasons()[c.User] {
				if !slices.Contains(unseen, r) {
					t.Errorf("there is a reason why nothing was seen to need %s, but something was, or no role gives it", r)
				}
			}
		})
	}
}

// withLists adds a list for each watch: caches list if the API server refuses to stream the initial state.
func withLists(requests []Request) []Request {
	for _, r := range requests {
		if r.Verb == "watch" {
			r.Verb = "list"
			requests = append(requests, r)
		}
	}
	return requests
}

// unneeded returns the rights without which all the requests are allowed. Those of a Role begin with its namespace.
func (p *policy) unneeded(t *testing.T, c Component, requests []Request) (unneeded []string) {
	t.Helper()
	all := p.rules(c)
	if len(all) == 0 {
		t.Fatal("it has no roles")
	}
	for role, rules := range all {
		whole := *rules
		single := pieces(whole)
		for i, piece := range single {
			*rules = slices.Delete(slices.Clone(single), i, i+1)
			if len(p.refused(t, requests)) == 0 {
				unneeded = append(unneeded, in(role)+rightOf(piece).String())
			}
		}
		*rules = whole
	}
	slices.Sort(unneeded)
	return unneeded
}

// in returns the prefix for the rights of a role: the namespace of a Role, and nothing for a ClusterRole.
func in(role string) string {
	if namespace, _, found := strings.Cut(role, "/"); found {
		return namespace + ": "
	}
	return ""
}
