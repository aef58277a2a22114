package authorizer

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// TestOtherUsers checks that users who are neither a gardenlet nor an extension may not do what every gardenlet may.
func TestOtherUsers(t *testing.T) {
	const seeds, accounts = "gardener.cloud:system:seeds", "system:serviceaccounts"
	a := New(landscape(), ReadsSeed)
	for about, who := range map[string]user.Info{
		"no name":       &user.DefaultInfo{},
		"administrator": &user.DefaultInfo{Name: "kubernetes-admin", Groups: []string{"system:masters"}},
		"ambiguous":     &user.DefaultInfo{Name: "gardener.cloud:system:seed:<ambiguous>", Groups: []string{seeds}},
		"empty seed":    &user.DefaultInfo{Name: "gardener.cloud:system:seed:", Groups: []string{seeds}},
		"no seed":       &user.DefaultInfo{Name: "gardener.cloud:system:seed", Groups: []string{seeds}},
		"group alone":   &user.DefaultInfo{Groups: []string{seeds}},
		"name alone":    &user.DefaultInfo{Name: "gardener.cloud:system:seed:a"},
		"name in the accounts' groups": &user.DefaultInfo{Name: "gardener.cloud:system:seed:a",
			Groups: []string{accounts, accounts + ":seed-a"}},
		"seed with a colon":          &user.DefaultInfo{Name: "gardener.cloud:system:seed:a:b", Groups: []string{seeds}},
		"seed in upper case":         &user.DefaultInfo{Name: "gardener.cloud:system:seed:A", Groups: []string{seeds}},
		"star for a seed":            &user.DefaultInfo{Name: "gardener.cloud:system:seed:*", Groups: []string{seeds}},
		"extension among gardenlets": &user.DefaultInfo{Name: extensionA.Name, Groups: []string{seeds, accounts, accounts + ":seed-a"}},
		"account without extension-": &user.DefaultInfo{Name: "system:serviceaccount:seed-a:x", Groups: extensionA.Groups},
		"account in another namespace": &user.DefaultInfo{Name: "system:serviceaccount:garden:extension-x",
			Groups: []string{accounts, accounts + ":garden"}},
		"account with another's group": &user.DefaultInfo{Name: extensionA.Name, Groups: []string{accounts, accounts + ":seed-b"}},
		"account with two groups": &user.DefaultInfo{
			Name: extensionA.Name, Groups: []string{accounts, accounts + ":seed-b", accounts + ":seed-a"}},
		"account with a colon": &user.DefaultInfo{Name: "system:serviceaccount:seed-a:extension-b:extension-c",
			Groups: []string{accounts, accounts + ":seed-a:extension-b"}},
		"account of a seed with colons": &user.DefaultInfo{Name: "system:serviceaccount:seed-a:b:extension-c",
			Groups: []string{accounts, accounts + ":seed-a:b"}},
	} {
		for _, what := range []string{"list shoots.core.gardener.cloud ", "get seeds.core.gardener.cloud a", "create secrets garden-a/",
			"get shoots.core.gardener.cloud garden-a/own", "update shoots.core.gardener.cloud garden-a/own", "delete secrets garden-b/absent",
			"list secrets seed-a/", "get namespaces garden", "create events default/", "create leases.coordination.k8s.io seed-a/"} {
			words := strings.Split(what, " ")
			if got, reason := allowed(t, a, request(who, words[0], words[1], words[2])); got {
				t.Errorf("%s: %s is allowed: %s", about, what, reason)
			}
		}
	}
	attrs := request(nil, "list", "shoots.core.gardener.cloud", "")
	if decision, _, err := a.Authorize(t.Context(), attrs); decision != authorizer.DecisionNoOpinion || err != nil {
		t.Errorf("without a user: %v, %v", decision, err)
	}
}

// TestOddNames checks that a request with an invalid object name is never allowed, whatever the verb, not even where a
// free verb would allow it.
func TestOddNames(t *testing.T) {
	a := New(landscape(), ReadsSeed)
	long := strings.Repeat("a", 254)
	for _, of := range []string{"garden-a/..", "garden-a/.", "garden-a/a/b", "garden-a/a%2fb", "garden-a/a b",
		"garden-a/a\nb", "garden-a/a\x00", "garden-a/\u00fcber",
		"garden-a/own\n", "garden-a/ own", "garden-a/" + long,
		"Garden-a/own", "garden_a/own", "garden-a /own", "*/own", "../own", "garden.a/own", "-garden/own", "garden-/own",
		"garden-a\n/own", "gärden/own",
		strings.Repeat("a", 64) + "/own", "*/", "garden-a,garden-b/"} {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "delete"} {
			for _, resource := range []string{"shoots.core.gardener.cloud", "secrets", "configmaps", "events", "serviceaccounts",
				"seeds.core.gardener.cloud", "namespaces"} {
				for _, who := range users {
					if got, reason := allowed(t, a, request(who, verb, resource, of)); got {
						t.Errorf("%s %s %q is allowed: %s", verb, resource, of, reason)
					}
				}
			}
		}
	}
}

// TestOneObject tries requests that look like requests for the seed's own object.
func TestOneObject(t *testing.T) {
	g := landscape()
	// Vertices that no object can have, so that the test does not depend on their absence from the graph.
	g[graph.Vertex{Kind: graph.KindSecret, Name: "own"}] = []string{"a"}
	g[graph.Vertex{Kind: graph.KindShoot, Name: "own"}] = []string{"a"}
	g[graph.Vertex{Kind: graph.KindSecret}] = []string{"a"}
	g[graph.Vertex{Kind: graph.KindConfigMap, Namespace: "garden-a"}] = []string{"a"}
	g[graph.Vertex{Kind: graph.KindCloudProfile}] = []string{"a"}
	g[graph.Vertex{Kind: graph.KindCloudProfile, Namespace: "garden-b", Name: "foreign"}] = []string{"a"}
	a := New(g, ReadsSeed)
	for _, c := range []struct {
		verb, resource, of string
		want               bool
	}{
		// An empty namespace does not match any namespace.
		{"get", "secrets", "own", false},
		{"delete", "secrets", "own", false},
		{"delete", "secrets", "absent", false},
		{"update", "shoots.core.gardener.cloud", "own", false},
		// An empty name does not match any name.
		{"get", "secrets", "", false},
		{"get", "secrets", "garden-a/", false},
		{"list", "configmaps", "garden-a/", false},
		{"delete", "configmaps", "garden-a/", false},
		{"get", "cloudprofiles.core.gardener.cloud", "", false},
		{"update", "shoots.core.gardener.cloud", "garden-a/", false},
		{"deletecollection", "secrets", "garden-a/", false},
		{"deletecollection", "secrets", "garden-a/own", false},
		// The same name elsewhere.
		{"get", "secrets", "garden-b/own", false},
		{"get", "secrets", "garden-a/foreign", false},
		{"update", "shoots.core.gardener.cloud", "garden-b/own", false},
		{"get", "secrets", "garden-a/owner", false},
		{"get", "secrets", "garden-a/OWN", false},
		// The namespace of a cluster-scoped object is ignored: it neither allows nor prevents anything.
		{"get", "cloudprofiles.core.gardener.cloud", "garden-a/own", true},
		{"get", "cloudprofiles.core.gardener.cloud", "garden-b/own", true},
		{"get", "cloudprofiles.core.gardener.cloud", "garden-b/foreign", false},
		{"delete", "seeds.core.gardener.cloud", "b", false},
		{"delete", "seeds.core.gardener.cloud", "garden/b", false},
		{"delete", "seeds.core.gardener.cloud", "seed-a/b", false},
		{"delete", "backupbuckets.core.gardener.cloud", "garden-x/foreign", false},
		{"get", "namespaces", "own/own", true},
		{"get", "namespaces", "garden-b/own", true},
		{"get", "namespaces", "own/foreign", false},
		{"get", "namespaces", "own/", false},
		{"delete", "namespaces", "absent", false},
		// Its own Seed, and another.
		{"update", "seeds.core.gardener.cloud", "a", true},
		{"update", "seeds.core.gardener.cloud", "b", false},
		{"update", "seeds.core.gardener.cloud", "aa", false},
		{"update", "seeds.core.gardener.cloud/status", "b", false},
		// Subresources and names are not confused.
		{"update", "shoots.core.gardener.cloud/binding", "garden-a/own", false},
		{"create", "shoots.core.gardener.cloud/adminkubeconfig", "garden-a/own", false},
		{"create", "shoots.core.gardener.cloud/viewerkubeconfig", "garden-a/own", false},
		{"update", "namespaces/finalize", "own", false},
		{"create", "serviceaccounts/token", "garden-a/own", false},
		{"create", "secrets/token", "garden-a/own", false},
		{"update", "certificatesigningrequests.certificates.k8s.io/approval", "own", false},
		{"create", "workloadidentities.security.gardener.cloud/token", "garden-a/own", true},
		{"create", "workloadidentities.security.gardener.cloud/token", "garden-b/foreign", false},
		{"create", "workloadidentities.security.gardener.cloud/token", "garden-a/", false},
		{"create", "workloadidentities.security.gardener.cloud/Token", "garden-a/own", false},
		// Known resources in other API groups, and misspelled ones.
		{"list", "shoots", "", false},
		{"list", "shoots.gardener.cloud", "", false},
		{"list", "shoots.core.gardener.cloud.evil", "", false},
		{"list", "shoots.Core.gardener.cloud", "", false},
		{"list", "Shoots.core.gardener.cloud", "", false},
		{"list", "shoot.core.gardener.cloud", "", false},
		{"get", "secrets.core.gardener.cloud", "garden-a/own", false},
		{"get", "secrets.v1", "garden-a/own", false},
		{"create", "events.core.gardener.cloud", "default/", false},
		{"create", "serviceaccounts.core", "seed-a/", false},
		{"list", "leases", "seed-a/", false},
		{"list", "leases.extensions", "seed-a/", false},
		{"get", "namespaces.core.gardener.cloud", "garden", false},
		{"create", "clusterrolebindings", "", false},
		{"create", "clusterroles.rbac.authorization.k8s.io", "", false},
		{"create", "rolebindings.rbac.authorization.k8s.io", "garden-a/", false},
		{"create", "bastions.core.gardener.cloud", "garden-a/", false},
		{"*", "*.*", "", false},
		{"*", "secrets", "garden-a/own", false},
		{"get", "*", "garden-a/own", false},
		{"get", "", "garden-a/own", false},
		{"create", "selfsubjectaccessreviews.authorization.k8s.io", "", false},
		{"create", "tokenreviews.authentication.k8s.io", "", false},
		{"impersonate", "users", "gardener.cloud:system:seed:b", false},
		{"impersonate", "groups", "system:masters", false},
		{"get", "quotas.core.gardener.cloud", "garden-a/own", false},
		{"get", "pods", "garden-a/own", false},
		{"get", "nodes", "own", false},
	} {
		attrs := request(gardenletA, c.verb, c.resource, c.of)
		if got, reason := allowed(t, a, attrs); got != c.want {
			t.Errorf("%s: allowed %v (%s)", show(attrs), got, reason)
		}
	}
}

// TestFieldSelectors tries lists and watches whose field selector names objects, or seems to.
func TestFieldSelectors(t *testing.T) {
	a := New(landscape(), ReadsSeed)
	is := func(op selection.Operator, value string) fields.Requirement {
		return fields.Requirement{Field: "metadata.name", Operator: op, Value: value}
	}
	for _, c := range []struct {
		about     string
		namespace string
		name      string
		selector  fields.Requirements
		err       error
		want      bool
	}{
		{about: "own, as the API server asks", namespace: "garden-a", name: "own",
			selector: fields.Requirements{equals("metadata.name", "own")}, want: true},
		{about: "own, by the selector alone", namespace: "garden-a", selector: fields.Requirements{equals("metadata.name", "own")}, want: true},
		{about: "own, by ==", namespace: "garden-a", selector: fields.Requirements{is(selection.DoubleEquals, "own")}, want: true},
		{about: "own, by in", namespace: "garden-a", selector: fields.Requirements{is(selection.In, "own")}, want: true},
		{about: "own, by the name alone", namespace: "garden-a", name: "own", want: true},
		{about: "own, and more", namespace: "garden-a",
			selector: fields.Requirements{equals("type", "Opaque"), equals("metadata.name", "own")}, want: true},
		{about: "own, and not another", namespace: "garden-a",
			selector: fields.Requirements{is(selection.NotEquals, "x"), equals("metadata.name", "own")}, want: true},
		{about: "own twice", namespace: "garden-a",
			selector: fields.Requirements{equals("metadata.name", "own"), equals("metadata.name", "own")}, want: true},

		{about: "foreign", namespace: "garden-b", selector: fields.Requirements{equals("metadata.name", "foreign")}},
		{about: "foreign, as the API server asks", namespace: "garden-b", name: "foreign",
			selector: fields.Requirements{equals("metadata.name", "foreign")}},
		{about: "absent", namespace: "garden-b", selector: fields.Requirements{equals("metadata.name", "absent")}},
		{about: "nothing", namespace: "garden-a"},
		{about: "other than own", namespace: "garden-a", selector: fields.Requirements{is(selection.NotEquals, "own")}},
		{about: "not in own", namespace: "garden-a", selector: fields.Requirements{is(selection.NotIn, "own")}},
		{about: "existing", namespace: "garden-a", selector: fields.Requirements{is(selection.Exists, "own")}},
		{about: "greater than own", namespace: "garden-a", selector: fields.Requirements{is(selection.GreaterThan, "own")}},
		{about: "an operator in upper case", namespace: "garden-a", selector: fields.Requirements{is("IN", "own")}},
		{about: "own and foreign", namespace: "garden-a",
			selector: fields.Requirements{equals("metadata.name", "own"), equals("metadata.name", "foreign")}},
		{about: "foreign and own", namespace: "garden-a",
			selector: fields.Requirements{equals("metadata.name", "foreign"), equals("metadata.name", "own")}},
		{about: "own by the name, foreign by the selector", namespace: "garden-a", name: "own",
			selector: fields.Requirements{equals("metadata.name", "foreign")}},
		{about: "foreign by the name, own by the selector", namespace: "garden-a", name: "foreign",
			selector: fields.Requirements{equals("metadata.name", "own")}},
		{about: "an empty name", namespace: "garden-a", selector: fields.Requirements{equals("metadata.name", "")}},
		{about: "own and an empty name", namespace: "garden-a",
			selector: fields.Requirements{equals("metadata.name", "own"), equals("metadata.name", "")}},
		{about: "an empty name and own", namespace: "garden-a",
			selector: fields.Requirements{equals("metadata.name", ""), equals("metadata.name", "own")}},
		{about: "own in all namespaces", selector: fields.Requirements{equals("metadata.name", "own")}},
		{about: "own in all namespaces, as the API server asks", name: "own", selector: fields.Requirements{equals("metadata.name", "own")}},
		{about: "own and a namespace by the selector",
			selector: fields.Requirements{equals("metadata.name", "own"), equals("metadata.namespace", "garden-a")}},
		{about: "own in another namespace", namespace: "garden-b", selector: fields.Requirements{equals("metadata.name", "own")}},
		{about: "another field", namespace: "garden-a", selector: fields.Requirements{equals("spec.name", "own")}},
		{about: "a field in upper case", namespace: "garden-a", selector: fields.Requirements{equals("metadata.Name", "own")}},
		{about: "a field with a space", namespace: "garden-a", selector: fields.Requirements{equals("metadata.name ", "own")}},
		{about: "several in one value", namespace: "garden-a", selector: fields.Requirements{equals("metadata.name", "own,foreign")}},
		{about: "a star", namespace: "garden-a", selector: fields.Requirements{equals("metadata.name", "*")}},
		{about: "a slash", namespace: "garden-a", selector: fields.Requirements{equals("metadata.name", "own/status")}},
		{about: "own, not to be read", namespace: "garden-a", name: "own", err: errors.New("odd")},
		{about: "own, the rest not to be read", namespace: "garden-a", name: "own",
			selector: fields.Requirements{equals("metadata.name", "own")}, err: errors.New("odd")},
	} {
		for _, verb := range []string{"list", "watch"} {
			for _, who := range users {
				attrs := request(who, verb, "configmaps", c.namespace+"/"+c.name)
				attrs.FieldSelectorRequirements, attrs.FieldSelectorParsingErr = c.selector, c.err
				if got, reason := allowed(t, a, attrs); got != c.want {
					t.Errorf("%s: %s: allowed %v (%s)", c.about, show(attrs), got, reason)
				}
				// The rule for secrets has no list and watch by the graph, so the field selector allows nothing.
				attrs.Resource = "secrets"
				if got, reason := allowed(t, a, attrs); got {
					t.Errorf("%s: %s is allowed: %s", c.about, show(attrs), reason)
				}
			}
		}
	}
}

// TestSelectorsOfOtherRequests checks that a field selector names an object only for list and watch, that a label
// selector never does, and that a field selector cannot change the name in a request.
func TestSelectorsOfOtherRequests(t *testing.T) {
	a := New(landscape(), ReadsSeed)
	for _, verb := range []string{"get", "update", "patch", "delete", "deletecollection"} {
		attrs := request(gardenletA, verb, "configmaps", "garden-a/")
		attrs.FieldSelectorRequirements = fields.Requirements{equals("metadata.name", "own")}
		if got, reason := allowed(t, a, attrs); got {
			t.Errorf("%s is allowed: %s", show(attrs), reason)
		}
		attrs = request(gardenletA, verb, "configmaps", "garden-b/foreign")
		attrs.FieldSelectorRequirements = fields.Requirements{equals("metadata.name", "own")}
		if got, reason := allowed(t, a, attrs); got {
			t.Errorf("%s is allowed: %s", show(attrs), reason)
		}
	}

	attrs := request(gardenletA, "list", "configmaps", "garden-a/")
	byLabel, err := labels.NewRequirement("metadata.name", selection.Equals, []string{"own"})
	if err != nil {
		t.Fatal(err)
	}
	attrs.LabelSelectorRequirements = labels.Requirements{*byLabel}
	if got, reason := allowed(t, a, attrs); got {
		t.Errorf("by label: %s is allowed: %s", show(attrs), reason)
	}

	attrs = request(gardenletA, "list", "leases.coordination.k8s.io", "garden-a/gardenlet-leader-election")
	attrs.FieldSelectorRequirements = fields.Requirements{equals("metadata.name", "foreign")}
	if got, reason := allowed(t, a, attrs); got {
		t.Errorf("%s is allowed: %s", show(attrs), reason)
	}
	attrs = request(gardenletA, "list", "leases.coordination.k8s.io", "garden-a/")
	attrs.FieldSelectorRequirements = fields.Requirements{equals("metadata.name", "gardenlet-leader-election")}
	if got, reason := allowed(t, a, attrs); !got {
		t.Errorf("%s: %s", show(attrs), reason)
	}
}

// TestMalformedSelectedName is TestOddNames for the name in a field selector, with a verb that is free for all objects.
func TestMalformedSelectedName(t *testing.T) {
	a := New(landscape(), ReadsAll)
	for name, want := range map[string]bool{"own": true, "foreign": true, "a/b": false, "..": false, "a\nb": false, "a b": false} {
		attrs := withName(request(gardenletA, "list", "shoots.core.gardener.cloud", "garden-a/"), name)
		if got, reason := allowed(t, a, attrs); got != want {
			t.Errorf("%q: allowed %v (%s)", name, got, reason)
		}
	}
}

func TestNonResourceRequests(t *testing.T) {
	a := New(landscape(), ReadsSeed)
	for _, path := range []string{"", "/healthz", "/metrics", "/api/v1/namespaces/garden-a/secrets/own", "/*"} {
		for _, verb := range []string{"get", "post", "list", "*"} {
			for _, who := range users {
				attrs := request(who, verb, "shoots.core.gardener.cloud", "garden-a/own")
				attrs.ResourceRequest, attrs.Path = false, path
				if got, reason := allowed(t, a, attrs); got {
					t.Errorf("%s %s is allowed: %s", verb, path, reason)
				}
			}
		}
	}
}

// FuzzAuthorize looks for requests that panic, are denied, or are allowed with invalid names.
func FuzzAuthorize(f *testing.F) {
	f.Add("gardener.cloud:system:seed:a", "gardener.cloud:system:seeds", "get", "", "secrets", "", "garden-a", "own", "metadata.name", "own")
	f.Add("system:serviceaccount:seed-a:extension-x", "system:serviceaccounts,system:serviceaccounts:seed-a", "delete",
		"coordination.k8s.io", "leases", "status", "seed-a", "x", "metadata.name", "")
	f.Add("gardener.cloud:system:seed:a", "gardener.cloud:system:seeds", "*", "", "serviceaccounts", "token", "seed-a", "..", "a", "b")
	a := New(landscape(), ReadsSeed)
	f.Fuzz(func(t *testing.T, name, groups, verb, group, resource, sub, namespace, object, field, value string) {
		attrs := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: name, Groups: strings.Split(groups, ",")}, ResourceRequest: true,
			Verb: verb, APIGroup: group, Resource: resource, Subresource: sub, Namespace: namespace, Name: object,
			FieldSelectorRequirements: fields.Requirements{equals(field, value)}}
		got, reason := allowed(t, a, attrs)
		if got && (!isName(object) || !isNamespace(namespace) || verb == "" || strings.ToLower(verb) != verb) {
			t.Errorf("%s is allowed: %s", show(attrs), reason)
		}
	})
}
