package controlplane

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/handler3"
)

// TestCustomDocuments follows the links of the index: they lead to the documents of what is served, and to another document
// when a definition has changed.
func TestCustomDocuments(t *testing.T) {
	crds := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	static := func() map[string]groupDocument {
		return map[string]groupDocument{"apis/static/v1": {hash: "s", Handler: http.NotFoundHandler()}}
	}
	paths := mux.NewPathRecorderMux("test")
	serveVersion3(paths, customDocuments(static, listers.NewCustomResourceDefinitionLister(crds)))
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", "application/json")
		paths.ServeHTTP(w, r)
		return w
	}
	link := func(gv string) string {
		t.Helper()
		var index handler3.OpenAPIV3Discovery
		if err := json.Unmarshal(get(openAPIV3Path).Body.Bytes(), &index); err != nil {
			t.Fatal(err)
		}
		if index.Paths["apis/static/v1"].ServerRelativeURL == "" {
			t.Errorf("the index has lost the static document: %v", index)
		}
		return index.Paths["apis/"+gv].ServerRelativeURL
	}
	has := func(path string, words ...string) {
		t.Helper()
		w := get(path)
		for _, word := range words {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), word) {
				t.Errorf("%s: %q is not in %d %.300s", path, word, w.Code, w.Body)
			}
		}
	}

	_ = crds.Add(customResource("Tea", 1, "sort"))
	first := link("drinks.test/v1")
	has(first, "test.drinks.v1.Tea", `"sort"`)
	has(strings.Split(first, "?")[0], `"sort"`)

	_ = crds.Add(customResource("Tea", 2, "color"))
	_ = crds.Add(customResource("Coffee", 1, "roast"))
	second := link("drinks.test/v1")
	if second == first {
		t.Errorf("%s leads to two documents", first)
	}
	has(second, `"color"`, `"roast"`)
	if again := link("drinks.test/v1"); again != second {
		t.Errorf("the document is at %s and at %s", second, again)
	}

	for _, kind := range []string{"Tea", "Coffee"} {
		refused := customResource(kind, 2, "color")
		refused.Status.Conditions = nil
		_ = crds.Update(refused)
	}
	if left := link("drinks.test/v1"); left != "" {
		t.Errorf("a resource that is not served is in the index: %s", left)
	}
	if w := get(second); w.Code != http.StatusNotFound {
		t.Errorf("%s: %d", second, w.Code)
	}
}

func customResource(kind string, generation int64, field string) *apiextensionsv1.CustomResourceDefinition {
	lower := strings.ToLower(kind)
	names := apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: lower, Singular: lower}
	schema := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: "string"}}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: lower + ".drinks.test", Generation: generation},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "drinks.test", Names: names, Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}},
				{Name: "v0", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}},
			},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{
			AcceptedNames: names,
			Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
			},
		},
	}
}
