package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestObjects creates and updates every kind of the Gardener API with one thing changed at a time, without effect.
func TestObjects(t *testing.T) {
	makeFixtures(t)
	alike, all := 0, 0
	for _, obj := range read(t, objectsFile) {
		fields := slices.Sorted(maps.Keys(obj.Object))
		for _, field := range fields {
			if field == "apiVersion" || field == "kind" {
				continue
			}
			walk(obj.Object, []any{field}, func(about string, path []any, value any) {
				for _, r := range requestsWith(obj, path, value) {
					all++
					about := fmt.Sprintf("%s %s %s %s", r.method, obj.GetKind(), join(path), about)
					if _, differing := compare(t, about, r); len(differing) == 0 {
						alike++
					} else {
						t.Errorf("%s\n%s", about, strings.Join(differing, "\n"))
					}
				}
			})
		}
	}
	count(t, alike, all)
}

// requestsWith are the requests that create and update an object that has another value at a path.
func requestsWith(obj *unstructured.Unstructured, path []any, value any) []request {
	changed := obj.DeepCopy()
	set(changed.Object, path, value)
	created := changed.DeepCopy()
	if join(path) != "metadata.name" {
		created.SetName(obj.GetName() + "-new")
	}
	collection := pathOf(obj)
	return []request{
		{user: administrator, method: http.MethodPost, path: collection + "?dryRun=All", body: created.Object},
		{user: administrator, method: http.MethodPut, path: collection + "/" + obj.GetName() + "?dryRun=All", body: changed.Object},
		{user: administrator, method: http.MethodPatch, path: collection + "/" + obj.GetName() + "?dryRun=All", contentType: mergePatch,
			body: changed.Object},
	}
}

// removed stands for no value.
type removed struct{}

// walk calls fn for every change below a path.
func walk(obj values, path []any, fn func(about string, path []any, value any)) {
	value := get(obj, path)
	with := func(about string, value any) { fn(about, path, value) }
	with("removed", removed{})
	with("null", nil)
	switch v := value.(type) {
	case values:
		with("a text", "text")
		with("empty", values{})
		fn("unknown field", append(slices.Clone(path), "unknownField"), "x")
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(obj, append(slices.Clone(path), key), fn)
		}
	case []any:
		with("a text", "text")
		with("empty", []any{})
		with("twice", append(slices.Clone(v), v...))
		for i := range v {
			walk(obj, append(slices.Clone(path), i), fn)
		}
	case string:
		with("empty", "")
		with("another", v+"-x")
		with("upper case", strings.ToUpper(v)+" !")
		with("long", strings.Repeat("a", 300))
		with("a number", int64(1))
		with("an object", values{"a": "b"})
	case bool:
		with("the opposite", !v)
		with("a text", "text")
	default: // a number
		with("negative", int64(-1))
		with("zero", int64(0))
		with("large", int64(1<<40))
		with("a text", "text")
	}
}

func join(path []any) string {
	var parts []string
	for _, p := range path {
		parts = append(parts, fmt.Sprint(p))
	}
	return strings.Join(parts, ".")
}

func get(value any, path []any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			value = value.(values)[p]
		case int:
			value = value.([]any)[p]
		}
	}
	return value
}

// set changes the value at a path.
func set(obj values, path []any, value any) {
	last := len(path) - 1
	parent := get(obj, path[:last])
	switch p := path[last].(type) {
	case string:
		if value == (removed{}) {
			delete(parent.(values), p)
		} else {
			parent.(values)[p] = value
		}
	case int:
		list := parent.([]any)
		if value == (removed{}) {
			set(obj, path[:last], slices.Delete(slices.Clone(list), p, p+1))
		} else {
			list[p] = value
		}
	}
}
