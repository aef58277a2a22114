package manifest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// mapper knows kinds only once they have been added.
type mapper struct {
	*meta.DefaultRESTMapper
	resets int
}

func (m *mapper) Reset() { m.resets++ }

// server is the API server of an Applier: it refuses what the function refuses, and records what it accepts.
type server struct {
	applied []string
	refuse  func(s *server, name string) error
}

func newServer(refuse func(*server, string) error) (*server, *Applier, *mapper) {
	s := &server{refuse: refuse}
	client := fake.NewSimpleDynamicClient(scheme.Scheme)
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.PatchAction).GetName()
		if s.refuse != nil {
			if err := s.refuse(s, name); err != nil {
				return true, nil, err
			}
		}
		if namespace := action.GetNamespace(); namespace != "" {
			name = namespace + "/" + name
		}
		s.applied = append(s.applied, name)
		return true, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "K"}}, nil
	})
	m := &mapper{DefaultRESTMapper: meta.NewDefaultRESTMapper(nil)}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return s, &Applier{client: client, mapper: m, timeout: applyRetry}, m
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func document(kind string, names ...string) string {
	var documents []string
	for _, name := range names {
		documents = append(documents, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: "+name+"}\n")
	}
	return strings.Join(documents, "---\n")
}

func (s *server) has(name string) bool { return slices.Contains(s.applied, name) }

func invalid(name string) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, name, nil)
}

func forbidden(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, name, errors.New("what it refers to is not there"))
}

func TestPathKeepsTheOrderNamespacesFirst(t *testing.T) {
	s, applier, _ := newServer(nil)
	dir := writeFiles(t, map[string]string{
		"10-first.yaml":      document("ConfigMap", "b", "a"),
		"20-second.yml":      document("Namespace", "ns") + "---\n" + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\n",
		"30-below/last.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}`,
		"40-notes.txt":       "no manifest",
	})
	if err := applier.Path(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.applied, " "); got != "ns default/b default/a ns/c default/d" {
		t.Errorf("applied %s", got)
	}
	if err := applier.Path(t.Context(), filepath.Join(dir, "40-notes.txt")); err == nil {
		t.Error("a file without manifests is applied")
	}
	if err := applier.Path(t.Context(), filepath.Join(dir, "not-there")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestPathTriesAgain(t *testing.T) {
	attempts := 0
	for name, test := range map[string]struct {
		refuse func(*server, string) error
		served bool
	}{
		"reference to a later document, refused by admission": {served: true, refuse: func(s *server, name string) error {
			if name == "a" && !s.has("default/z") {
				return forbidden(name)
			}
			return nil
		}},
		"reference to a later document, refused by validation": {served: true, refuse: func(s *server, name string) error {
			if name == "a" && !s.has("default/z") {
				return invalid(name)
			}
			return nil
		}},
		"something that a controller makes": {served: true, refuse: func(_ *server, name string) error {
			if attempts++; name == "a" && attempts < 6 {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "garden-dev")
			}
			return nil
		}},
		"a kind that is served later": {},
	} {
		t.Run(name, func(t *testing.T) {
			s, applier, m := newServer(test.refuse)
			applier.timeout = time.Minute
			files := map[string]string{"a.yaml": document("ConfigMap", "a"), "z.yaml": document("ConfigMap", "z")}
			want := 2
			if !test.served {
				files["b.yaml"], want = document("Widget", "w"), 3
				s.refuse = func(*server, string) error {
					m.Add(corev1.SchemeGroupVersion.WithKind("Widget"), meta.RESTScopeNamespace)
					return nil
				}
				// The manifest of the missing kind comes first.
				files["a.yaml"], files["b.yaml"] = files["b.yaml"], files["a.yaml"]
			}
			if err := applier.Path(t.Context(), writeFiles(t, files)); err != nil {
				t.Fatal(err)
			}
			if len(s.applied) != want {
				t.Errorf("applied %v", s.applied)
			}
			if !test.served && m.resets == 0 {
				t.Error("the kinds were not asked for again")
			}
		})
	}
}

func TestPathSaysWhatCannotBeApplied(t *testing.T) {
	s, applier, _ := newServer(func(_ *server, name string) error {
		switch name {
		case "bad":
			return invalid(name)
		case "refused":
			return forbidden(name)
		default:
			return nil
		}
	})
	dir := writeFiles(t, map[string]string{"x.yaml": document("ConfigMap", "good", "bad"),
		"y.yaml": document("ConfigMap", "refused", "good-too")})
	err := applier.Path(t.Context(), dir)
	for _, want := range []string{filepath.Join(dir, "x.yaml") + ", document 2: ConfigMap bad",
		filepath.Join(dir, "y.yaml") + ", document 1: ConfigMap refused"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	if !s.has("default/good") || !s.has("default/good-too") {
		t.Errorf("applied only %v", s.applied)
	}

	// Without an invalid manifest, Path retries before it gives up.
	err = applier.Path(t.Context(), filepath.Join(dir, "y.yaml"))
	if !apierrors.IsForbidden(errors.Unwrap(unjoin(err))) {
		t.Errorf("the error is %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	applier.timeout = time.Hour
	if err := applier.Path(ended, filepath.Join(dir, "y.yaml")); err == nil {
		t.Error("no error although the context has ended")
	}
}

func unjoin(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
}
