package gardenapi

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// fuzzer makes bad requests from its source of randomness.
type fuzzer struct {
	*rand.Rand
	schemas openAPISchemas
}

func pick[T any](f fuzzer, from ...T) T { return from[f.Intn(len(from))] }

// chance returns true once in n times.
func (f fuzzer) chance(n int) bool { return f.Intn(n) == 0 }

// ---- requests ----

// request returns a request for an endpoint of the target: two in three with an object that is almost right, the
// others with anything.
func (f fuzzer) request(target fuzzTarget) fuzzRequest {
	base := "/apis/" + target.gvr.GroupVersion().String() + "/"
	if target.namespaced {
		base += "namespaces/" + target.existing.GetNamespace() + "/"
	}
	collection := base + target.gvr.Resource
	item := collection + "/" + target.existing.GetName()
	r := fuzzRequest{query: "dryRun=All", contentType: "application/json", accept: "application/json"}
	var obj map[string]any
	switch f.Intn(5) {
	case 0, 1:
		r.method, r.path, obj = http.MethodPost, collection, target.fresh.DeepCopy().Object
	case 2:
		r.method, r.path, obj = http.MethodPut, item, target.existing.DeepCopy().Object
	case 3:
		r.method, r.path, obj = http.MethodPatch, item, target.existing.DeepCopy().Object
	default:
		r.method, r.path, obj = http.MethodGet, item, target.existing.DeepCopy().Object
		if len(target.subresources) > 0 {
			subresource := pick(f, target.subresources...)
			r.path += "/" + subresource
			r.method, obj = f.subresource(subresource, obj)
		} else if f.chance(2) {
			r.path = collection
		}
	}
	for range 1 + f.Intn(3) {
		f.mutate(obj, target.schema)
	}
	r.body, _ = json.Marshal(obj)
	if r.method == http.MethodPatch {
		f.patch(&r, obj)
	}
	if f.chance(3) || r.method == http.MethodGet {
		f.spoil(&r)
	}
	return r
}

// subresource returns a method and an object for a subresource, mostly those that it is for.
func (f fuzzer) subresource(name string, parent map[string]any) (string, map[string]any) {
	options := map[string]struct {
		method string
		body   map[string]any
	}{
		"adminkubeconfig": {http.MethodPost, map[string]any{"apiVersion": "authentication.gardener.cloud/v1alpha1",
			"kind": "AdminKubeconfigRequest", "spec": map[string]any{"expirationSeconds": 600}}},
		"viewerkubeconfig": {http.MethodPost, map[string]any{"apiVersion": "authentication.gardener.cloud/v1alpha1",
			"kind": "ViewerKubeconfigRequest", "spec": map[string]any{"expirationSeconds": 600}}},
		"token": {http.MethodPost, map[string]any{"apiVersion": "security.gardener.cloud/v1alpha1",
			"kind": "TokenRequest", "spec": map[string]any{"expirationSeconds": 600,
				"contextObject": map[string]any{"kind": "Shoot", "apiVersion": "core.gardener.cloud/v1beta1", "name": "fuzz", "uid": "1"}}}},
		"scale": {http.MethodPut, map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale",
			"metadata": map[string]any{"name": "fuzz", "namespace": "garden"}, "spec": map[string]any{"replicas": 2}}},
	}
	method, body := pick(f, http.MethodPut, http.MethodPatch), parent
	if own, exists := options[name]; exists {
		method, body = own.method, own.body
	}
	if f.chance(8) {
		method = pick(f, http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
	}
	return method, body
}

// patch makes the body a patch of one of the four types, or one that is almost right.
func (f fuzzer) patch(r *fuzzRequest, obj map[string]any) {
	switch f.Intn(6) {
	case 0, 1:
		r.contentType = "application/merge-patch+json"
	case 2:
		r.contentType = "application/strategic-merge-patch+json"
	case 3:
		r.contentType = "application/apply-patch+yaml"
		r.query += "&fieldManager=fuzz&force=" + pick(f, "true", "false")
		if metadata, isMap := obj["metadata"].(map[string]any); isMap {
			delete(metadata, "managedFields")
		}
		r.body, _ = json.Marshal(obj)
	default:
		r.contentType = "application/json-patch+json"
		r.body, _ = json.Marshal(f.jsonPatch(obj))
	}
}

func (f fuzzer) jsonPatch(obj map[string]any) any {
	operations := []any{}
	for range 1 + f.Intn(4) {
		operation := map[string]any{
			"op":   pick[any](f, "add", "remove", "replace", "move", "copy", "test", "explode", nil, 7),
			"path": f.pointer(obj), "from": f.pointer(obj), "value": f.junk(2),
		}
		if f.chance(4) {
			delete(operation, pick(f, "op", "path", "from", "value"))
		}
		operations = append(operations, operation)
	}
	if f.chance(10) {
		return f.junk(3)
	}
	return operations
}

// pointer returns a JSON pointer to a field that exists, or almost.
func (f fuzzer) pointer(obj map[string]any) string {
	pointer := ""
	var node any = obj
	for {
		fields, isMap := node.(map[string]any)
		if !isMap || len(fields) == 0 || f.chance(5) {
			return pointer + pick(f, "", "", "", "/", "/-", "/0", "/-1", "/99999999999999999999", "/~2", "no-slash", "/a/b/c")
		}
		key := pick(f, slices.Sorted(maps.Keys(fields))...)
		pointer, node = pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), fields[key]
	}
}

// spoil changes the request in a way that does not depend on the object.
func (f fuzzer) spoil(r *fuzzRequest) {
	switch f.Intn(9) {
	case 0:
		r.body = r.body[:f.Intn(len(r.body)+1)]
	case 1:
		for range 1 + f.Intn(8) {
			if len(r.body) > 0 {
				r.body[f.Intn(len(r.body))] = byte(f.Intn(256))
			}
		}
	case 2:
		r.body = f.garbage()
	case 3:
		r.contentType = pick(f, "", "text/plain", "application/xml", "application/octet-stream", "application/json; charset=utf-7",
			"a/b/c", ";;;", "application/yaml", "multipart/form-data", "application/json;stream=watch")
	case 4:
		if converted, err := yaml.JSONToYAML(r.body); err == nil {
			r.body, r.contentType = converted, "application/yaml"
		}
	case 5:
		r.contentType = "application/vnd.kubernetes.protobuf"
		r.body = append([]byte("k8s\x00"), f.bytes(f.Intn(300))...)
	case 6:
		r.contentType, r.body = "application/cbor", append([]byte{0xd9, 0xd9, 0xf7}, f.bytes(f.Intn(300))...)
	case 7:
		r.query += "&" + f.query()
	default:
		r.accept = pick(f, "", "*/*", "text/html", "application/yaml", "application/vnd.kubernetes.protobuf",
			"application/cbor", "application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=Nothing;v=v9;g=x",
			"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", ";")
	}
}

// query returns a parameter with a bad value. A resource version of the far future is not among them, because the
// right answer to it is that it is not reached in time.
func (f fuzzer) query() string {
	name := pick(f, "dryRun", "fieldManager", "fieldValidation", "limit", "continue", "resourceVersion",
		"resourceVersionMatch", "labelSelector", "fieldSelector",
		"timeoutSeconds", "timeout", "pretty", "force", "propagationPolicy", "gracePeriodSeconds", "includeObject",
		"sendInitialEvents", "nonsense")
	return name + "=" + url.QueryEscape(pick(f, "", "-1", "x", "All", "Strict", "Ignore", "true", "!", "a=b,c in (",
		"metadata.name=a,spec.no=b", "\x00", "日本", "1e9", "{}", strings.Repeat("a", 3000)))
}

// garbage returns a body that is no object at all.
func (f fuzzer) garbage() []byte {
	const (
		deep = 20_000
		huge = 2_500_000
	)
	if f.chance(20) {
		return []byte(pick(f, `{"metadata":{"annotations":{"a":"`+strings.Repeat("a", huge)+`"}}}`, "["+strings.Repeat("{},", huge/3)+"{}]",
			strings.Repeat(`{"spec":`, huge/8), strings.Repeat(" ", huge)))
	}
	switch f.Intn(4) {
	case 0:
		return f.bytes(f.Intn(2000))
	case 1:
		opening := pick(f, "[", `{"spec":`, `{"metadata":{"labels":`, "- ", "{")
		return []byte(strings.Repeat(opening, f.Intn(deep)))
	case 2:
		body, _ := json.Marshal(f.junk(4))
		return body
	default:
		return []byte(pick(f, "", "null", "{}", "[]", "0", `""`, "true", "{", `{"kind":"Status"}`,
			`{"apiVersion":"v1","kind":"List","items":[]}`, `{"a":1,"a":2}`, "\xff\xfe", "&a [*a,*a]", "a: &a [*a]\nb: *a",
			"--- \n---\n", "NaN", `{"metadata":{"name":"\ud800"}}`))
	}
}

func (f fuzzer) bytes(n int) []byte {
	random := make([]byte, n)
	_, _ = f.Read(random)
	return random
}

// ---- objects ----

// mutate changes one thing in an object: as the schema allows, which leads deep into validation, or against it.
func (f fuzzer) mutate(obj, schema map[string]any) {
	if f.chance(2) {
		f.graft(obj, schema)
		return
	}
	containers := containersIn(obj)
	switch container := pick(f, containers...).(type) {
	case map[string]any:
		f.mutateMap(container)
	case []any:
		f.mutateSlice(container)
	}
}

func containersIn(node any) []any {
	var found []any
	switch node := node.(type) {
	case map[string]any:
		found = append(found, node)
		for _, key := range slices.Sorted(maps.Keys(node)) {
			found = append(found, containersIn(node[key])...)
		}
	case []any:
		found = append(found, node)
		for _, item := range node {
			found = append(found, containersIn(item)...)
		}
	}
	return found
}

func (f fuzzer) mutateMap(fields map[string]any) {
	if len(fields) == 0 {
		fields[f.text()] = f.junk(2)
		return
	}
	key := pick(f, slices.Sorted(maps.Keys(fields))...)
	items, isSlice := fields[key].([]any)
	switch {
	case f.chance(4):
		delete(fields, key)
	case isSlice && len(items) > 0 && f.chance(2):
		fields[key] = append(items, items[f.Intn(len(items))])
	case f.chance(8):
		fields[f.text()] = fields[key]
	default:
		fields[key] = f.junk(2)
	}
}

func (f fuzzer) mutateSlice(items []any) {
	if len(items) > 0 {
		items[f.Intn(len(items))] = f.junk(2)
	}
}

// graft walks down the schema along the object, and puts a random value of the right type somewhere.
func (f fuzzer) graft(node any, schema map[string]any) {
	schema = f.schemas.resolve(schema)
	switch node := node.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		if len(properties) == 0 {
			return
		}
		key := pick(f, slices.Sorted(maps.Keys(properties))...)
		property := properties[key].(map[string]any)
		if key == "spec" || node[key] != nil && f.chance(2) {
			f.graft(node[key], property)
		} else if key != "apiVersion" && key != "kind" && key != "metadata" {
			node[key] = f.generate(property, 4)
		}
	case []any:
		if items, _ := schema["items"].(map[string]any); len(node) > 0 && items != nil {
			f.graft(node[f.Intn(len(node))], items)
		}
	}
}

// generate returns a value that fits the schema, with as much left out as possible.
func (f fuzzer) generate(schema map[string]any, depth int) any {
	schema = f.schemas.resolve(schema)
	switch schema["type"] {
	case "object":
		fields := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if depth > 0 && f.chance(3) {
				fields[key] = f.generate(properties[key].(map[string]any), depth-1)
			}
		}
		if values, isMap := schema["additionalProperties"].(map[string]any); isMap && f.chance(2) {
			fields[f.text()] = f.generate(values, depth-1)
		}
		return fields
	case "array":
		items, many := []any{}, f.Intn(3)
		for range many {
			item, _ := schema["items"].(map[string]any)
			items = append(items, f.generate(item, depth-1))
		}
		return items
	case "integer":
		return pick(f, 0, 1, -1, 100, math.MaxInt32, math.MinInt32)
	case "number":
		return pick(f, 0, 0.5, -1, 1e9)
	case "boolean":
		return f.chance(2)
	case "string":
		if schema["format"] == "date-time" {
			return pick(f, "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "0000-01-01T00:00:00Z")
		}
		return f.text()
	}
	return pick[any](f, map[string]any{}, f.text(), 1, nil, map[string]any{"apiVersion": "v1", "kind": "Secret"})
}

func (f fuzzer) text() string {
	return pick(f, "", "a", "fuzz", "local", "a--b", "Bad_Name", "1", "-1", "0", "1Gi", "-5", "1.36.0", "1.36", "v1",
		"v1/v2/v3", "10.0.0.0/8", "10.0.0.0/33", "::/0", "2001:db8::/64", "10%", "110%",
		"24h", "-1s", "0 0 * * *", "* * *", "220000+0100", "Europe/Berlin", "containerd", "Secret", "Shoot", "User",
		"ServiceAccount", "amd64", "IPv4", "IPv6", "example.com", "*.example.com", "a@b.c",
		"{{", "{{ .resources.a.data.b }}", "%s%n", "\x00", "日本語", "\u202e", "🦄", "../..", "<script>", "https://example.com",
		"eA==", "system:serviceaccount:a", "extension:", "true", "null",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", strings.Repeat("a", 64), strings.Repeat("long", 5000))
}

// junk returns any JSON value.
func (f fuzzer) junk(depth int) any {
	switch f.Intn(9) {
	case 0:
		return nil
	case 1:
		return f.chance(2)
	case 2:
		return pick[any](f, 0, -1, 1, 1.5, -0.1, 1e300, math.MaxInt64, math.MinInt64, json.Number("99999999999999999999999999"))
	case 3:
		return pick[any](f, []any{}, map[string]any{}, "")
	case 4:
		if depth > 0 {
			return []any{f.junk(depth - 1), f.junk(depth - 1)}
		}
	case 5:
		if depth > 0 {
			return map[string]any{f.text(): f.junk(depth - 1),
				pick(f, "name", "type", "$patch", "$setElementOrder/a", "$retainKeys"): f.junk(depth - 1)}
		}
	}
	return f.text()
}

// ---- schemas ----

// openAPISchemas are the schemas of all Gardener groups by their names.
type openAPISchemas map[string]map[string]any

func fuzzSchemas(t *testing.T) openAPISchemas {
	t.Helper()
	all, seen := openAPISchemas{}, map[schema.GroupVersion]bool{}
	for _, r := range append(slices.Clone(gardenResources),
		resourceInfo{gvr: schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1"}}) {
		gv := r.gvr.GroupVersion()
		if seen[gv] {
			continue
		}
		seen[gv] = true
		data, err := kube.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/" + gv.String()).Do(t.Context()).Raw()
		must(t, err)
		var document struct {
			Components struct {
				Schemas openAPISchemas `json:"schemas"`
			} `json:"components"`
		}
		must(t, json.Unmarshal(data, &document))
		maps.Copy(all, document.Components.Schemas)
	}
	return all
}

func (s openAPISchemas) ofKind(gvk schema.GroupVersionKind) map[string]any {
	for _, candidate := range s {
		kinds, _, _ := unstructured.NestedSlice(candidate, "x-kubernetes-group-version-kind")
		for _, kind := range kinds {
			if k, isMap := kind.(map[string]any); isMap && k["group"] == gvk.Group && k["version"] == gvk.Version && k["kind"] == gvk.Kind {
				return candidate
			}
		}
	}
	return nil
}

// resolve follows references, which in these documents are alone or the only item of an allOf.
func (s openAPISchemas) resolve(schema map[string]any) map[string]any {
	for {
		if all, isSlice := schema["allOf"].([]any); isSlice && len(all) == 1 {
			schema, _ = all[0].(map[string]any)
		}
		reference, isReference := schema["$ref"].(string)
		if !isReference {
			return schema
		}
		schema = s[strings.TrimPrefix(reference, "#/components/schemas/")]
	}
}
