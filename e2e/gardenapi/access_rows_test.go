package gardenapi

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAccessRows makes the requests of testdata/access-rows.txt: the authorizer's rules, row by row.
func TestAccessRows(t *testing.T) {
	w := newAccessWorld(t, "rows", suite.DataDir(), config)
	w.create(t, &unstructured.Unstructured{Object: meta("v1", "Event", "garden-"+w.name, "event", map[string]any{
		"involvedObject": map[string]any{"kind": "Shoot", "namespace": "garden-" + w.name, "name": w.a.name},
		"reason":         "Tested", "type": "Normal"})}, "")
	w.settle(t)
	data, err := os.ReadFile("testdata/access-rows.txt")
	must(t, err)
	rows := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) != 5 {
			t.Fatalf("%d fields in %q", len(fields), line)
		}
		rows++
		w.tryRow(t, fields)
	}
	if rows < 150 {
		t.Errorf("only %d rows", rows)
	}
}

// tryRow makes the requests of a row.
func (w *accessWorld) tryRow(t *testing.T, fields []string) {
	t.Helper()
	resource, sub, _ := strings.Cut(fields[0], "/")
	var namespace, name string
	selector, selects := strings.CutPrefix(fields[1], "?")
	if !selects {
		selector = ""
		namespace, name = w.objectOfRow(resource, fields[1])
	} else {
		selector = strings.NewReplacer("/A", "/"+w.a.name, "/B", "/"+w.b.name, "=A", "="+w.a.name, "=B", "="+w.b.name).Replace(selector)
	}
	for verb := range strings.FieldsSeq(fields[2]) {
		r := accessRequest{verb: verb, resource: resource, sub: sub, namespace: namespace, name: name, selector: selector}
		for i, who := range []*accessUser{w.gardenletA, w.extensionA} {
			want := fields[3+i]
			if got, detail := w.outcome(t, who, r, want == "may"); got != want {
				t.Errorf("%s: %s: %s, expected %s (%s)", who.Name, r, got, want, detail)
			}
		}
	}
}

// objectOfRow replaces the placeholders of a row by the world's names.
func (w *accessWorld) objectOfRow(resource, text string) (namespace, name string) {
	namespace, name, namespaced := strings.Cut(text, "/")
	if !namespaced {
		namespace, name = "", text
	}
	if name == "-" {
		name = ""
	}
	return w.nameOfRow(namespace), w.nameOfRow(name)
}

func (w *accessWorld) nameOfRow(text string) string {
	switch text {
	case "P":
		return "garden-" + w.name
	case "W":
		return w.name
	case "OWN-TOKEN":
		return bootstrapTokenOf("garden", w.a.name)
	case "TOKEN-A":
		return bootstrapTokenOf("garden", w.a.name+"-t")
	case "TOKEN-B":
		return bootstrapTokenOf("garden", w.b.name+"-t")
	}
	text = strings.NewReplacer("W--SHOOT-A", w.name+"--"+w.a.shootUID, "W--SHOOT-B", w.name+"--"+w.b.shootUID, "UID-A",
		w.a.uid, "UID-B", w.b.uid).Replace(text)
	for _, letter := range []string{"A", "B"} {
		seed := map[string]string{"A": w.a.name, "B": w.b.name}[letter]
		for _, before := range []string{"", "seed-", "gardenlet-bootstrap-",
			"gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-"} {
			if rest, ok := strings.CutPrefix(text, before+letter); ok && (rest == "" || strings.ContainsAny(rest[:1], "-.")) {
				return before + seed + rest
			}
		}
	}
	return text
}

// outcome makes a request with the existing object as its body, and returns what came of it. Requests that cannot be
// made like this are reviewed.
func (w *accessWorld) outcome(t *testing.T, who *accessUser, r accessRequest, review bool) (outcome, detail string) {
	t.Helper()
	if review || r.sub == "seedclient" || r.sub == "finalizers" || r.sub == "token" && r.resource == "workloadidentities" {
		allowed, why, err := who.may(t.Context(), r)
		must(t, err)
		switch {
		case !allowed:
			return "no opinion", why
		case review:
			return "may", why
		}
		return "allow", why
	}
	if err := w.fillBody(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	a := who.must(t, r)
	switch {
	case a.OK():
		return "allow", ""
	case a.NoOpinion():
		return "no opinion", a.String()
	case a.Code == 409:
		return "exists", a.String()
	case a.Rejected():
		return "reject", a.String()
	case a.Code == 403:
		return "refused", a.String()
	}
	return fmt.Sprint(a.Code), a.Message
}

// fillBody sets the body that a request needs: the existing object, or a minimal one.
func (w *accessWorld) fillBody(ctx context.Context, r *accessRequest) error {
	switch {
	case r.verb == "patch":
		r.body = map[string]any{}
		return nil
	case r.verb == "create" && r.sub == "token":
		r.body = meta("authentication.k8s.io/v1", "TokenRequest", r.namespace, r.name, map[string]any{"spec": map[string]any{}})
		return nil
	case r.verb == "create" && r.sub != "":
		r.body = meta("authentication.gardener.cloud/v1alpha1", "AdminKubeconfigRequest", r.namespace, r.name, nil)
		return nil
	case r.verb != "create" && r.verb != "update" || r.name == "":
		if r.verb == "create" {
			r.body = map[string]any{}
		}
		return nil
	}
	obj, err := w.at(r.resource, r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		if r.verb == "update" { // the object does not exist
			r.body = map[string]any{"metadata": map[string]any{"name": r.name}}
			return nil
		}
		return fmt.Errorf("%s: %w", r, err)
	}
	r.body = obj.Object
	if r.verb == "create" {
		r.body, r.name = fresh(obj.Object), ""
	}
	return nil
}
