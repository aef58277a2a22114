package authorizer

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// expectation has the verbs that a user may use on a resource: on an object that leads to the user's seed, on one that
// leads to another seed, on one that is not in the graph, and without an object name. For all other verbs, the
// authorizer has no opinion.
type expectation struct {
	resource                      string
	user                          string
	own, foreign, absent, unnamed string
}

// expectations has every resource of "Implemented Rules", for both types of users. The namespaces here are not the
// seed's own; those, and rules for particular names, are in besides_test.go.
var expectations = []expectation{
	{"backupbuckets.core.gardener.cloud", "gardenlet", "create get list watch update patch delete", "create get list watch",
		"create get list watch", "create get list watch"},
	{"backupbuckets.core.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"backupbuckets.core.gardener.cloud/status", "gardenlet", "create get list watch update patch delete",
		"create get list watch", "create get list watch", "create get list watch"},
	{"backupbuckets.core.gardener.cloud/status", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"backupbuckets.core.gardener.cloud/finalizers", "gardenlet", "create get list watch update patch delete",
		"create get list watch", "create get list watch", "create get list watch"},
	{"backupbuckets.core.gardener.cloud/finalizers", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},

	{"backupentries.core.gardener.cloud", "gardenlet", "create get list watch update patch delete", "get list watch",
		"get list watch", "create get list watch"},
	{"backupentries.core.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"backupentries.core.gardener.cloud/status", "gardenlet", "create get list watch update patch delete", "get list watch",
		"get list watch", "create get list watch"},
	{"backupentries.core.gardener.cloud/status", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},

	{"bastions.operations.gardener.cloud", "gardenlet", "create get list watch update patch", "get list watch",
		"get list watch", "create get list watch"},
	{"bastions.operations.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"bastions.operations.gardener.cloud/status", "gardenlet", "create get list watch update patch", "get list watch",
		"get list watch", "create get list watch"},
	{"bastions.operations.gardener.cloud/status", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},

	{"certificatesigningrequests.certificates.k8s.io", "gardenlet", "create get list watch", "create", "create", "create"},
	{"certificatesigningrequests.certificates.k8s.io", "extension", "get list watch", "", "", ""},
	{"certificatesigningrequests.certificates.k8s.io/seedclient", "gardenlet", "create get list watch", "create", "create", "create"},
	{"certificatesigningrequests.certificates.k8s.io/seedclient", "extension", "", "", "", ""},

	{"cloudprofiles.core.gardener.cloud", "gardenlet", "get list watch", "", "", ""},
	{"cloudprofiles.core.gardener.cloud", "extension", "get list watch", "", "", ""},
	{"namespacedcloudprofiles.core.gardener.cloud", "gardenlet", "get list watch", "", "", ""},
	{"namespacedcloudprofiles.core.gardener.cloud", "extension", "get list watch", "", "", ""},
	{"exposureclasses.core.gardener.cloud", "gardenlet", "get list watch", "", "", ""},
	{"exposureclasses.core.gardener.cloud", "extension", "get list watch", "", "", ""},
	{"projects.core.gardener.cloud", "gardenlet", "get list watch", "", "", ""},
	{"projects.core.gardener.cloud", "extension", "get list watch", "", "", ""},
	{"namespaces", "gardenlet", "get list watch", "", "", ""},
	{"namespaces", "extension", "get list watch", "", "", ""},
	{"secretbindings.core.gardener.cloud", "gardenlet", "get list watch", "", "", ""},
	{"secretbindings.core.gardener.cloud", "extension", "get list watch", "", "", ""},
	{"credentialsbindings.security.gardener.cloud", "gardenlet", "get list watch", "", "", ""},
	{"credentialsbindings.security.gardener.cloud", "extension", "get list watch", "", "", ""},
	{"controllerdeployments.core.gardener.cloud", "gardenlet", "get list watch", "", "", ""},
	{"controllerdeployments.core.gardener.cloud", "extension", "get list watch", "", "", ""},

	{"clusterrolebindings.rbac.authorization.k8s.io", "gardenlet", "create get update patch", "create", "create", "create"},
	{"clusterrolebindings.rbac.authorization.k8s.io", "extension", "get", "", "", ""},
	{"clusterroles.rbac.authorization.k8s.io", "gardenlet", "", "", "", ""},
	{"clusterroles.rbac.authorization.k8s.io", "extension", "", "", "", ""},

	{"configmaps", "gardenlet", "create get list watch update patch delete", "", "", "create"},
	{"configmaps", "extension", "get list watch", "", "", ""},

	{"controllerinstallations.core.gardener.cloud", "gardenlet", "get list watch update patch", "get list watch",
		"get list watch", "get list watch"},
	{"controllerinstallations.core.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"controllerinstallations.core.gardener.cloud/status", "gardenlet", "get list watch update patch", "get list watch",
		"get list watch", "get list watch"},
	{"controllerinstallations.core.gardener.cloud/status", "extension", "get list watch", "get list watch",
		"get list watch", "get list watch"},

	{"controllerregistrations.core.gardener.cloud", "gardenlet", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"controllerregistrations.core.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},

	{"events", "gardenlet", "create patch", "create patch", "create patch", "create patch"},
	{"events", "extension", "create patch", "create patch", "create patch", "create patch"},
	{"events.events.k8s.io", "gardenlet", "create patch", "create patch", "create patch", "create patch"},
	{"events.events.k8s.io", "extension", "create patch", "create patch", "create patch", "create patch"},

	{"gardenlets.seedmanagement.gardener.cloud", "gardenlet", "get list watch update patch", "get list watch", "get list watch",
		"get list watch"},
	{"gardenlets.seedmanagement.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"gardenlets.seedmanagement.gardener.cloud/status", "gardenlet", "get list watch update patch", "get list watch", "get list watch",
		"get list watch"},
	{"gardenlets.seedmanagement.gardener.cloud/status", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},

	{"internalsecrets.core.gardener.cloud", "gardenlet", "create get list watch update patch delete", "", "", "create"},
	{"internalsecrets.core.gardener.cloud", "extension", "get list watch", "", "", ""},

	{"leases.coordination.k8s.io", "gardenlet", "create get list watch update patch", "", "", "create"},
	{"leases.coordination.k8s.io", "extension", "", "", "", ""},

	{"managedseeds.seedmanagement.gardener.cloud", "gardenlet", "get list watch update patch", "get list watch",
		"get list watch", "get list watch"},
	{"managedseeds.seedmanagement.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"managedseeds.seedmanagement.gardener.cloud/status", "gardenlet", "get list watch update patch", "get list watch",
		"get list watch", "get list watch"},
	{"managedseeds.seedmanagement.gardener.cloud/status", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},

	{"secrets", "gardenlet", "create get update patch delete", "", "", "create"},
	{"secrets", "extension", "get", "", "", ""},

	{"seeds.core.gardener.cloud", "gardenlet", "create get list watch update patch delete", "create get list watch",
		"create get list watch", "create get list watch"},
	{"seeds.core.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"seeds.core.gardener.cloud/status", "gardenlet", "create get list watch update patch delete", "create get list watch",
		"create get list watch", "create get list watch"},
	{"seeds.core.gardener.cloud/status", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},

	{"serviceaccounts", "gardenlet", "create get update patch", "", "", "create"},
	{"serviceaccounts", "extension", "get", "", "", ""},

	{"shoots.core.gardener.cloud", "gardenlet", "get list watch update patch", "get list watch", "get list watch", "get list watch"},
	{"shoots.core.gardener.cloud", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"shoots.core.gardener.cloud/status", "gardenlet", "get list watch update patch", "get list watch", "get list watch", "get list watch"},
	{"shoots.core.gardener.cloud/status", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},
	{"shoots.core.gardener.cloud/finalizers", "gardenlet", "get list watch update patch", "get list watch",
		"get list watch", "get list watch"},
	{"shoots.core.gardener.cloud/finalizers", "extension", "get list watch", "get list watch", "get list watch", "get list watch"},

	{"shootstates.core.gardener.cloud", "gardenlet", "create get list watch update patch delete", "", "", "create"},
	{"shootstates.core.gardener.cloud", "extension", "get list watch", "", "", ""},

	{"workloadidentities.security.gardener.cloud", "gardenlet", "create get list watch patch", "", "", ""},
	{"workloadidentities.security.gardener.cloud", "extension", "create get list watch", "", "", ""},
	{"workloadidentities.security.gardener.cloud/token", "gardenlet", "create get list watch patch", "", "", ""},
	{"workloadidentities.security.gardener.cloud/token", "extension", "create get list watch", "", "", ""},
}

// The verbs and subresources that are tried: those of the API, and similar words.
var (
	triedVerbs = []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection",
		"*", "", "GET", "Create", " get", "get ", "get,list", "every", "proxy", "impersonate", "bind", "escalate", "use",
		"approve", "head", "post"}
	triedSubresources = []string{"status", "finalizers", "token", "seedclient", "scale", "binding", "approval", "finalize", "proxy", "exec",
		"log", "eviction", "ephemeralcontainers", "adminkubeconfig", "viewerkubeconfig", "*", "Status", "STATUS", "status ",
		" ", "status/scale", "state"}
)

// createdWithin are the resources that may be created in namespaces that lead to the seed.
var createdWithin = map[string]bool{
	"backupentries.core.gardener.cloud": true, "bastions.operations.gardener.cloud": true, "configmaps": true, "secrets": true,
	"internalsecrets.core.gardener.cloud": true, "leases.coordination.k8s.io": true, "serviceaccounts": true,
	"shootstates.core.gardener.cloud": true,
}

// ofOneSeed are the resources that belong to one seed each. With ReadsSeed, only the own objects are read.
var ofOneSeed = map[string]bool{
	"bastions.operations.gardener.cloud": true, "controllerinstallations.core.gardener.cloud": true,
	"gardenlets.seedmanagement.gardener.cloud": true, "managedseeds.seedmanagement.gardener.cloud": true,
	"seeds.core.gardener.cloud": true, "shoots.core.gardener.cloud": true,
}

// with returns the expectation for the reads; it is written for ReadsAll.
func (e expectation) with(reads Reads) expectation {
	if base, _, _ := strings.Cut(e.resource, "/"); reads == ReadsSeed && ofOneSeed[base] {
		for _, verbs := range []*string{&e.foreign, &e.absent, &e.unnamed} {
			*verbs = strings.ReplaceAll(*verbs, "get list watch", "")
		}
	}
	return e
}

func TestTable(t *testing.T) {
	for _, reads := range []Reads{ReadsSeed, ReadsAll} {
		t.Run(string(reads), func(t *testing.T) { testTable(t, reads) })
	}
}

// TestSelectors lists and watches with selectors, as the gardenlet and an extension of seed a.
func TestSelectors(t *testing.T) {
	const label = "name.seed.gardener.cloud/"
	byLabel := map[string]bool{label + "a=true": true, label + "a==true": true, label + "a in (true)": true, label + "a=true,x!=y": true,
		label + "a": false, label + "a!=true": false, label + "a!=false": false, label + "a notin (x)": false, label + "a in (true,false)": false,
		"!" + label + "a": false, "!x": false, "x!=y": false, label + "a=": false, label + "b=true": false, label + "=true": false,
		"spec.seedName=a": false}
	byField := func(field string) map[string]bool {
		return map[string]bool{field + "=a": true, field + "==a": true, field + "=a,metadata.namespace=x": true,
			field + "!=b": false, field + "!=a": false, field + "=b": false, field + "=": false, "metadata.namespace=a": false}
	}
	for resource, selectors := range map[string]map[string]bool{
		"bastions.operations.gardener.cloud":          byField("spec.seedName"),
		"controllerinstallations.core.gardener.cloud": byField("spec.seedRef.name"),
		"managedseeds.seedmanagement.gardener.cloud":  byLabel,
		"seeds.core.gardener.cloud":                   byLabel,
		"shoots.core.gardener.cloud":                  byLabel,
		"backupbuckets.core.gardener.cloud":           {"spec.seedName=b": true, label + "b=true": true}, // free
		"controllerregistrations.core.gardener.cloud": {label + "b=true": true},                          // free
		"secrets": {"spec.seedName=a": false, label + "a=true": false},
		"gardenlets.seedmanagement.gardener.cloud":       {label + "a=true": false, "spec.seedName=a": false},
		"certificatesigningrequests.certificates.k8s.io": {label + "a=true": false},
	} {
		for selector, want := range selectors {
			for _, who := range users {
				for _, verb := range []string{"get", "list", "watch", "deletecollection"} {
					for _, where := range []string{"", "garden-b/"} {
						attrs := request(who, verb, resource, where)
						if fields, err := fields.ParseSelector(selector); err == nil {
							attrs.FieldSelectorRequirements = fields.Requirements()
						}
						attrs.LabelSelectorRequirements, _ = labels.ParseToRequirements(selector)
						want := want && (verb == "list" || verb == "watch" || verb == "get" && strings.HasSuffix(resource, "s.core.gardener.cloud") &&
							(strings.HasPrefix(resource, "backupb") || strings.HasPrefix(resource, "controllerr")))
						if got, reason := allowed(t, New(landscape(), ReadsSeed), attrs); got != want {
							t.Errorf("%s with %q: allowed %v (%s)", show(attrs), selector, got, reason)
						}
					}
				}
			}
		}
	}
	// A name asks for a path, whatever the selector is.
	attrs := withName(request(gardenletA, "list", "shoots.core.gardener.cloud", "garden-b/"), "foreign")
	attrs.LabelSelectorRequirements, _ = labels.ParseToRequirements(label + "a=true")
	if got, reason := allowed(t, New(landscape(), ReadsSeed), attrs); got {
		t.Errorf("%s: %s", show(attrs), reason)
	}
}

func testTable(t *testing.T, reads Reads) {
	a := New(landscape(), reads)
	expected := make(map[[2]string]bool)
	for _, e := range expectations {
		expected[[2]string{e.user, e.resource}] = true
		e.with(reads).check(t, a)
	}
	// Resources without a row above: nothing is allowed.
	for user := range users {
		for resource := range kinds() {
			if !expected[[2]string{user, resource}] {
				t.Errorf("%s for a %s is not in the expectations", resource, user)
			}
			for _, sub := range triedSubresources {
				if of := resource + "/" + sub; !expected[[2]string{user, of}] {
					expectation{resource: of, user: user}.check(t, a)
				}
			}
		}
	}
}

func (e expectation) check(t *testing.T, a *Authorizer) {
	t.Helper()
	base, _, _ := strings.Cut(e.resource, "/")
	_, isCluster := clusterKinds[base]
	for _, c := range []struct {
		of   object
		want string
	}{{own, e.own}, {foreign, e.foreign}, {absent, e.absent}, {object{namespace: own.namespace}, e.unnamed}, {object{}, e.unnamed}} {
		if isCluster {
			c.of.namespace = ""
		}
		want := strings.Fields(c.want)
		if c.of == (object{}) && createdWithin[base] {
			want = slices.DeleteFunc(want, func(verb string) bool { return verb == "create" }) // not without a namespace
		}
		for _, verb := range triedVerbs {
			attrs := request(users[e.user], verb, e.resource, c.of.namespace+"/"+c.of.name)
			got, reason := allowed(t, a, attrs)
			if got != slices.Contains(want, verb) {
				t.Errorf("%s: allowed %v (%s)", show(attrs), got, reason)
			}
		}
	}
}

// TestEveryRuleIsTried checks that the expectations and the table have the same resources.
func TestEveryRuleIsTried(t *testing.T) {
	tried := kinds()
	for _, rule := range Rules(ReadsSeed) {
		name := rule.Resource
		if rule.Group != "" {
			name += "." + rule.Group
		}
		kind, found := tried[name]
		_, inNamespace := namespacedKinds[name]
		if !found || kind != rule.Kind || inNamespace != rule.Namespaced {
			t.Errorf("%s: kind %v, namespaced %v; the test has kind %v, namespaced %v, known %v", name, rule.Kind, rule.Namespaced,
				kind, inNamespace, found)
		}
	}
	if len(tried) != len(rules[ReadsSeed]) {
		t.Errorf("%d resources are tried, the table has %d", len(tried), len(rules[ReadsSeed]))
	}
}

// TestTableIsReadable finds unknown words in the table, which would silently grant nothing.
func TestTableIsReadable(t *testing.T) {
	used := make(map[string]bool)
	for _, row := range ruleTable {
		for name := range strings.FieldsSeq(row.resources) {
			if _, found := resources[name]; !found {
				t.Errorf("the table has rules for %q, which is no resource of it", name)
			}
			used[name] = true
		}
		for _, g := range []grant{row.both, row.gardenlet, row.extension} {
			for _, words := range []string{g.free, g.graph, g.within, g.selected, g.all} {
				if got := parseVerbs(words).String(); got != words {
					t.Errorf("%s: the verbs %q are read as %q", row.resources, words, got)
				}
			}
		}
		if row.both != (grant{}) && (row.gardenlet != (grant{}) || row.extension != (grant{})) {
			t.Errorf("%s: a rule is either for both or for each", row.resources)
		}
		for _, p := range []string{row.namespace, row.name} {
			if parsed := parsePattern(p); strings.ContainsAny(parsed.prefix, "<>") {
				t.Errorf("%s: the placeholder in %q is none", row.resources, p)
			}
		}
	}
	for name := range resources {
		if !used[name] {
			t.Errorf("no rule is for the resource %s", name)
		}
	}
}

// kinds returns every resource with its kind.
func kinds() map[string]graph.Kind {
	all := maps.Clone(clusterKinds)
	maps.Copy(all, namespacedKinds)
	return all
}
