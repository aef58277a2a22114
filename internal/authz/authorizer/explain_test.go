package authorizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// TestReasons checks the reasons that users see.
func TestReasons(t *testing.T) {
	const ofShoots = "graph: get list watch update patch; with the label selector name.seed.gardener.cloud/a=true: list watch; " +
		"subresources: status finalizers"
	g := landscape()
	delete(g, graph.Vertex{Kind: graph.KindSeed, Name: "c"})
	a := New(g, ReadsSeed)
	gardenletC := &user.DefaultInfo{Name: "gardener.cloud:system:seed:c", Groups: gardenletA.Groups}
	unnamedGardenlet := &user.DefaultInfo{Name: "me", Groups: gardenletA.Groups}
	for _, c := range []struct {
		who                user.Info
		verb, resource, of string
		want               string
	}{
		{gardenletA, "list", "controllerregistrations.core.gardener.cloud", "", "allowed: the verb is free for controllerregistrations"},
		{gardenletA, "list", "shoots.core.gardener.cloud", "",
			"list shoots is allowed for one object that leads to the seed, and the request names none: add the field selector " +
				"metadata.name=<name> or, for all objects of the seed, the label selector name.seed.gardener.cloud/a=true"},
		{gardenletA, "list", "secrets", "seed-a/", "allowed: the verb is free for secrets in seed-<seed>"},
		{gardenletA, "get", "namespaces", "garden", "allowed: the verb is free for namespaces garden"},
		{gardenletA, "create", "events.events.k8s.io", "x/", "allowed: the verb is free for events.events.k8s.io"},
		{gardenletA, "delete", "serviceaccounts", "garden/gardenlet-bootstrap-a",
			"allowed: the verb is free for serviceaccounts gardenlet-bootstrap-<seed> in garden"},
		{gardenletA, "get", "secrets", "garden-a/own", "allowed by the graph: the object leads to the seed, which the rule for secrets asks for"},
		{gardenletA, "create", "secrets", "garden-a/",
			"allowed by the graph: the namespace leads to the seed, which the rule for secrets asks for"},
		{gardenletA, "create", "secrets", "garden-b/", "no path from Namespace \"garden-b\" to Seed a, which the rule for secrets asks for"},
		{gardenletA, "delete", "secrets", "garden-b/absent", "no path from Secret garden-b/absent to Seed a"},

		{gardenletA, "get", "secrets", "garden-b/foreign", "no path from Secret garden-b/foreign to Seed a"},
		{gardenletA, "get", "secrets", "garden-b/absent", "no path from Secret garden-b/absent to Seed a"},
		{gardenletC, "get", "secrets", "garden-b/foreign", "no path from Secret garden-b/foreign to Seed c"},
		{gardenletA, "list", "configmaps", "garden-a/",
			"list configmaps is allowed for one object that leads to the seed, and the request names none: add the field " +
				"selector metadata.name=<name>"},
		{gardenletA, "get", "configmaps", "own",
			"get configmaps is allowed for one object that leads to the seed, and the request names no namespace"},
		{gardenletA, "list", "secrets", "garden-a/own", "no rule lets the gardenlet list secrets here: it is for secrets in seed-a"},
		{extensionA, "create", "leases.coordination.k8s.io", "garden/",
			"no rule lets the extension create leases here: it is for leases in seed-a"},
		{extensionA, "create", "serviceaccounts", "seed-a/", "no rule lets the extension create serviceaccounts (graph: get)"},
		{gardenletA, "delete", "shoots.core.gardener.cloud", "garden-a/own",
			"no rule lets the gardenlet delete shoots (" + ofShoots + ")"},
		{gardenletA, "update", "shoots.core.gardener.cloud/binding", "garden-a/own",
			"no rule lets the gardenlet update shoots/binding, the subresource is in no rule (" + ofShoots + ")"},
		{gardenletA, "GET", "shoots.core.gardener.cloud", "garden-a/own",
			`no rule lets the gardenlet "GET" shoots (` + ofShoots + ")"},
		{gardenletA, "get", "secrets.core.gardener.cloud", "garden-a/own",
			"there are no rules for secrets in API group core.gardener.cloud; there are for those in the core API group"},
		{gardenletA, "get", "pods", "garden-a/own", "there are no rules for pods in the core API group"},
		{gardenletA, "get", "secrets", "garden-a/..", `no object is called ".." in namespace "garden-a": names and namespaces are as in the API`},
		{unnamedGardenlet, "get", "secrets", "garden-a/own",
			"the user is in group gardener.cloud:system:seeds, but its name does not say the seed: it has to be gardener.cloud:system:seed:<seed>"},
		{&user.DefaultInfo{Name: "alice"}, "get", "secrets", "garden-a/own", "the user is neither a gardenlet nor an extension on a seed"},
	} {
		attrs := request(c.who, c.verb, c.resource, c.of)
		if _, got := allowed(t, a, attrs); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", show(attrs), got, c.want)
		}
	}
}

// TestReasonsTellNothing checks that the answer for an object, and for a namespace, of another seed is the same as for one
// that does not exist, except for the name.
func TestReasonsTellNothing(t *testing.T) {
	a := New(landscape(), ReadsSeed)
	answer := func(who user.Info, verb, resource, of string) string {
		got, reason := allowed(t, a, request(who, verb, resource, of))
		namespace, name, _ := strings.Cut(of, "/")
		for _, word := range []string{name, namespace} {
			if word != "" {
				reason = strings.ReplaceAll(reason, word, "NAME")
			}
		}
		return fmt.Sprint(got, " ", reason)
	}
	for resource := range kinds() {
		for _, who := range users {
			for _, verb := range triedVerbs {
				for there, absent := range map[string]string{"garden-b/foreign": "garden-b/absent", "garden-b/": "garden-absent/"} {
					if got, want := answer(who, verb, resource, there), answer(who, verb, resource, absent); got != want {
						t.Errorf("%s %s %s: %s; if it is absent: %s", verb, resource, there, got, want)
					}
				}
			}
		}
	}
}

// TestReasonsDoNotRepeatMuch checks that the content of a request cannot fill logs or fake log lines.
func TestReasonsDoNotRepeatMuch(t *testing.T) {
	a := New(landscape(), ReadsSeed)
	odd := strings.Repeat("x\n", 10_000)
	for _, attrs := range []struct{ verb, resource, of string }{
		{odd, "shoots.core.gardener.cloud", "garden-a/own"}, {"get", odd, ""}, {"get", "shoots." + odd, ""},
		{"get", "shoots.core.gardener.cloud/" + odd, "garden-a/own"}, {"get", "secrets", odd + "/x"}, {"get", "secrets", "x/" + odd},
	} {
		if _, reason := allowed(t, a, request(gardenletA, attrs.verb, attrs.resource, attrs.of)); len(reason) > 500 {
			t.Errorf("the reason is %d bytes long: %.100s", len(reason), reason)
		}
	}
}

func TestExplain(t *testing.T) {
	seedA, seedB := graph.Vertex{Kind: graph.KindSeed, Name: "a"}, graph.Vertex{Kind: graph.KindSeed, Name: "b"}
	ownSecret := graph.Vertex{Kind: graph.KindSecret, Namespace: "garden-a", Name: "own"}
	foreignSecret := graph.Vertex{Kind: graph.KindSecret, Namespace: "garden-b", Name: "foreign"}
	a := New(landscape(), ReadsSeed)
	for _, c := range []struct {
		verb, resource, of string
		allowed            bool
		rule               string
		ending             string // the end of the reason
		path               []graph.Vertex
	}{
		{"get", "secrets", "garden-a/own", true, "secrets: graph: get update patch delete; within the seed's namespaces: create",
			"asks for", []graph.Vertex{ownSecret, seedA}},
		{"get", "secrets", "garden-b/foreign", false, "secrets: graph: get update patch delete; within the seed's namespaces: create",
			"to Seed a; it leads to Seed b", []graph.Vertex{foreignSecret, seedB}},
		{"get", "secrets", "garden-b/absent", false,
			"secrets: graph: get update patch delete; within the seed's namespaces: create", "refers to it", nil},
		{"get", "secrets", "seed-a/x", true, "secrets in seed-a: free: get list watch", "seed-<seed>", nil},
		{"delete", "secrets", "kube-system/bootstrap-token-4c40cb", true,
			"secrets bootstrap-token-4c40cb in kube-system: free: delete", "kube-system", nil},
		{"update", "seeds.core.gardener.cloud", "a", true, "seeds: free: create; graph: get list watch update patch delete; " +
			"with the label selector name.seed.gardener.cloud/a=true: list watch; subresources: status",
			"asks for", []graph.Vertex{seedA, seedA}},
		{"delete", "shoots.core.gardener.cloud", "garden-a/own", false,
			"shoots: graph: get list watch update patch; with the label selector name.seed.gardener.cloud/a=true: list watch; " +
				"subresources: status finalizers", ")", nil},
		{"get", "pods", "garden-a/own", false, "", "group", nil},
	} {
		e := a.Explain(request(gardenletA, c.verb, c.resource, c.of))
		if e.Allowed != c.allowed || e.Rule != c.rule || !strings.HasSuffix(e.Reason, c.ending) || !slices.Equal(e.Path, c.path) {
			t.Errorf("%s %s %s: %+v", c.verb, c.resource, c.of, e)
		}
	}

	// A Seed that is not in the graph is its own path.
	empty := New(fakeGraph{}, ReadsSeed)
	if e := empty.Explain(request(gardenletA, "update", "seeds.core.gardener.cloud", "a")); !e.Allowed ||
		!slices.Equal(e.Path, []graph.Vertex{seedA}) {
		t.Errorf("own Seed in an empty graph: %+v", e)
	}
}

// TestRules checks the rules that `gardenlite access matrix` and the documentation show.
func TestRules(t *testing.T) {
	all := Rules(ReadsSeed)
	find := func(objects string) Rule {
		i := slices.IndexFunc(all, func(r Rule) bool { return r.Objects() == objects })
		if i < 0 {
			t.Fatalf("no rule for %s", objects)
		}
		return all[i]
	}
	shoots := find("shoots")
	if got := shoots.For(seedidentity.Gardenlet).String(); got != "graph: get list watch update patch; "+
		"with the label selector name.seed.gardener.cloud/<seed>=true: list watch; subresources: status finalizers" {
		t.Errorf("shoots, gardenlet: %s", got)
	}
	if got := find("leases").For(seedidentity.Extension).String(); got != "nothing" {
		t.Errorf("leases, extension: %s", got)
	}
	if got := find("serviceaccounts in seed-<seed>").For(seedidentity.Gardenlet); got.String() != "free: every; subresources: token" ||
		len(got.Free.List()) != len(AllVerbs()) {
		t.Errorf("serviceaccounts in the seed's namespace: %s, %v", got, got.Free.List())
	}
	if got := shoots.For(seedidentity.None).String(); got != "nothing" {
		t.Errorf("shoots, no identity: %s", got)
	}
	text, err := json.Marshal(shoots)
	if err != nil || !strings.Contains(string(text), `"gardenlet":{"graph":"get list watch update patch","selected":"list watch",`+
		`"selector":{"label":"name.seed.gardener.cloud/"},"subresources":["status","finalizers"]}`) {
		t.Errorf("%s, %v", text, err)
	}
	// Callers may modify the returned table.
	all[0].Gardenlet.Free = EveryVerb
	all[0].Gardenlet.Subresources[0] = "scale"
	if again := Rules(ReadsSeed)[0].Gardenlet; again.Free == EveryVerb || again.Subresources[0] != "status" {
		t.Error("changing what Rules returned changed the rules")
	}
	attrs := request(gardenletA, "update", "backupbuckets.core.gardener.cloud/scale", "own")
	attrs.FieldSelectorRequirements = fields.Requirements{}
	if got, reason := allowed(t, New(landscape(), ReadsSeed), attrs); got {
		t.Errorf("changing what Rules returned changed a decision: %s", reason)
	}
}
