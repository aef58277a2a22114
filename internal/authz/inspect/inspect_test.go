package inspect

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func TestResolve(t *testing.T) {
	all := []served{
		servedFor("", "v1", "secrets", "Secret", true),
		servedFor("", "v1", "events", "Event", true, "ev"),
		servedFor("events.k8s.io", "v1", "events", "Event", true, "ev"),
		servedFor("core.gardener.cloud", "v1beta1", "secretbindings", "SecretBinding", true, "sb"),
		servedFor("core.gardener.cloud", "v1beta1", "shoots", "Shoot", true),
		{GroupVersionResource: schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"},
			Subresource: "status"},
	}
	for typed, want := range map[string]string{
		"secrets": "secrets", "secret": "secrets", "Secret": "secrets", "sb": "secretbindings.core.gardener.cloud",
		"shoot.core.gardener.cloud": "shoots.core.gardener.cloud", "shoots.v1beta1.core.gardener.cloud": "shoots.core.gardener.cloud",
		"shoot/status": "shoots.core.gardener.cloud/status", "ev": "events", "events.events.k8s.io": "events.events.k8s.io",
		"shoots/binding": `has no subresource "binding": it has status`, "shots": "did you mean shoots.core.gardener.cloud",
		"secrets.core.gardener.cloud": "no resource", "": "no resource", "nonsense": "kubectl api-resources", "/": "no resource",
	} {
		found, err := resolve(all, typed)
		var usage *usage.Error
		if err == nil && found.String() != want || err != nil && (!errors.As(err, &usage) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v; expected %s", typed, found, err, want)
		}
	}
}

// TestMatrixShowsSelectors checks the row of a resource whose objects are listed with a selector.
func TestMatrixShowsSelectors(t *testing.T) {
	shoots := servedFor("core.gardener.cloud", "v1beta1", "shoots", "Shoot", true)
	shoots.Verbs = []string{"get", "list", "watch", "delete"}
	for reads, want := range map[authorizer.Reads]map[string]string{
		authorizer.ReadsSeed: {"get": Graph, "list": Selector, "watch": Selector, "delete": None},
		authorizer.ReadsAll:  {"get": Free, "list": Free, "watch": Free, "delete": None},
	} {
		i := &Inspector{authorizer: authorizer.New(nil, reads)}
		rows := i.rowsOf([]served{shoots}, seedidentity.Identity{Type: seedidentity.Extension, Seed: "a"})
		if len(rows) != 1 || !maps.Equal(rows[0].Verbs, want) {
			t.Fatalf("%s: %+v, expected %v", reads, rows, want)
		}
		if reads == authorizer.ReadsAll {
			continue
		}
		request := rows[0].request(&user.DefaultInfo{}, "list", "")
		review := labelSelectorOf(request)
		if rows[0].LabelSelector != "name.seed.gardener.cloud/a=true" || review == nil || review.RawSelector != rows[0].LabelSelector {
			t.Errorf("selector %q, reviewed %+v", rows[0].LabelSelector, review)
		}
	}
}

// TestMatrixShowsAccessWithinNamespaces checks what a gardenlet may create in the namespaces of its seed's objects, which needs the
// graph, and in those of the garden, which does not.
func TestMatrixShowsAccessWithinNamespaces(t *testing.T) {
	configMaps := servedFor("", "v1", "configmaps", "ConfigMap", true)
	configMaps.Verbs = []string{"create", "get", "deletecollection"}
	got := map[string]string{}
	i := &Inspector{authorizer: authorizer.New(nil, authorizer.ReadsSeed)}
	for _, row := range i.rowsOf([]served{configMaps}, seedidentity.Identity{Type: seedidentity.Gardenlet, Seed: "a"}) {
		for verb, access := range row.Verbs {
			got[strings.TrimSpace(verb+" "+row.Only())] = access
		}
	}
	want := map[string]string{"create": Within, "get": Graph, "deletecollection": None,
		"create in garden": Free, "get in garden": Graph, "deletecollection in garden": None,
		"create gardener-system-public/gardener-info": Within, "get gardener-system-public/gardener-info": Free,
		"deletecollection gardener-system-public/gardener-info": None}
	if !maps.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
}

func servedFor(group, version, resource, kind string, namespaced bool, short ...string) served {
	return served{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		Kind: kind, Namespaced: namespaced,
		names: append([]string{strings.ToLower(kind)}, short...)}
}

func TestUserIsValidated(t *testing.T) {
	for want, u := range map[string]User{
		"one of --as-seed": {}, "with one of": {Seed: "a", Extension: "seed-a/extension-x"},
		"with one of --as-seed NAME, ": {Seed: "a", Stack: "dev/x"},
		`--as-stack "x"`:               {Stack: "x"},
		"NAMESPACE/NAME of":            {Extension: "extension-x"}, `"/x"`: {Extension: "/x"}, `"a/b/c"`: {Extension: "a/b/c"},
	} {
		var usageErr *usage.Error
		if err := u.Validate(); !errors.As(err, &usageErr) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected %q", u, err, want)
		}
	}
	for _, u := range []User{{Seed: "a"}, {Extension: "seed-a/extension-x"}, {Stack: "dev/wordpress"}} {
		if err := u.Validate(); err != nil {
			t.Errorf("%+v: %v", u, err)
		}
	}
}

// TestHandler checks that an invalid question is answered with 400, and every other error with 500.
func TestHandler(t *testing.T) {
	g := graph.New()
	g.Set(graph.Vertex{Kind: graph.KindSeed, Name: "local"}, nil)
	i := &Inspector{graph: g, authorizer: authorizer.New(g, authorizer.ReadsSeed), page: "https://127.0.0.1/page"}
	notReady := errors.New("the landscape is not ready")
	for _, test := range []struct {
		method, path, body string
		err                error
		code               int
		want               string
	}{
		{http.MethodGet, graphPath + "?format=text", "", nil, http.StatusOK, "Seed local\n1 of 1 objects"},
		{http.MethodGet, graphPath + "?format=text&kind=x", "", nil, http.StatusBadRequest, `"x" is no kind of the graph`},
		{http.MethodGet, graphPath + "?format=text", "", notReady, http.StatusInternalServerError, "not ready"},
		{http.MethodGet, pagePath, "", nil, http.StatusOK, i.page},
		{http.MethodPost, explainPath, "{}", nil, http.StatusBadRequest, "say for whom"},
		{http.MethodPost, matrixPath, "no JSON", nil, http.StatusBadRequest, "reading the question"},
		{http.MethodPost, matrixPath, `{"seed":"` + strings.Repeat("a", maxBody) + `"}`, nil, http.StatusBadRequest, "too large"},
	} {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
		Handler(func() (*Inspector, error) { return i, test.err }).ServeHTTP(recorder, request)
		answer, err := io.ReadAll(recorder.Body)
		if err != nil || recorder.Code != test.code || !strings.Contains(string(answer), test.want) {
			t.Errorf("%s %.80s: %d %s, %v", test.method, test.path, recorder.Code, answer, err)
		}
	}
}
