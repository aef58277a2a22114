package charts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

const chartYAML = "apiVersion: v2\nname: c\nversion: 1.0.0\n"

// template returns a chart with one template.
func template(t *testing.T, text string) []byte {
	t.Helper()
	return testutil.PackChart(t, "c", map[string]string{"Chart.yaml": chartYAML, "templates/t.yaml": text})
}

func request(archive []byte) Request {
	return Request{Archive: archive, Release: "r", Namespace: "ns", KubeVersion: "v1.36.4"}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: {{ .Release.Namespace }}}\n"

func TestRender(t *testing.T) {
	r := request(testutil.PackChart(t, "c", map[string]string{
		"Chart.yaml":          chartYAML,
		"values.yaml":         "replicas: 1\nkept: yes\n",
		"crds/x.yaml":         "kind: Left out",
		"templates/_help.tpl": `{{ define "name" }}{{ .Release.Name }}-x{{ end }}`,
		"templates/NOTES.txt": "Thank you",
		"templates/hook.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: h, annotations: {helm.sh/hook: test}}\n",
		"templates/none.yaml": "{{ if .Values.never }}kind: X{{ end }}",
		"templates/two.yaml": "---\n" + configMap + "---\n# nothing\n---\n" +
			strings.Replace(configMap, "name: a", `name: {{ include "name" . }}`, 1),
		"templates/work.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n" +
			"spec: {replicas: {{ .Values.replicas }}, version: {{ .Values.gardener.version }}, kept: {{ .Values.kept }}}\n",
		"templates/where.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w}\n" +
			"data: {v: '{{ .Capabilities.KubeVersion.Version }}', vpa: '{{ .Capabilities.APIVersions.Has \"autoscaling.k8s.io/v1\" }}'}\n",
	}))
	r.Values = map[string]any{"replicas": 3, "gardener": map[string]any{"version": "1.2.3"}}
	objects, err := Render(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, obj := range objects {
		got = append(got, obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName())
	}
	if want := "[ConfigMap ns/a ConfigMap ns/r-x ConfigMap /w Deployment /d]"; fmt.Sprint(got) != want {
		t.Fatalf("objects %v, not %s", got, want)
	}
	if replicas, ok, err := unstructured.NestedInt64(objects[3].Object, "spec", "replicas"); replicas != 3 || !ok || err != nil {
		t.Errorf("replicas %d, %t, %v", replicas, ok, err)
	}
	if version, _, _ := unstructured.NestedString(objects[3].Object, "spec", "version"); version != "1.2.3" {
		t.Errorf("the version of Gardener is %q", version)
	}
	if data, _, _ := unstructured.NestedStringMap(objects[2].Object, "data"); data["v"] != "v1.36.4" || data["vpa"] != "false" {
		t.Errorf("capabilities %v", data)
	}
}

// TestInvalidCharts checks that the error for each invalid chart tells what is wrong.
func TestInvalidCharts(t *testing.T) {
	many := map[string]string{"Chart.yaml": chartYAML}
	for i := range maxFiles {
		many[fmt.Sprintf("files/%d", i)] = ""
	}
	noise := make([]byte, maxPacked)
	_, _ = rand.Read(noise)
	schema := func(text string) []byte {
		return testutil.PackChart(t, "c", map[string]string{"Chart.yaml": chartYAML, "values.schema.json": text})
	}
	for name, test := range map[string]struct {
		archive []byte
		says    string
	}{
		"no archive":  {[]byte("x"), "helm package"},
		"no chart":    {testutil.PackChart(t, "c", map[string]string{"README": ""}), "Chart.yaml file is missing"},
		"packed size": {testutil.PackChart(t, "c", map[string]string{"Chart.yaml": chartYAML, "n": string(noise)}), "4194304 are allowed"},
		"unpacked size": {testutil.PackChart(t, "c", map[string]string{"Chart.yaml": chartYAML, "n": strings.Repeat("x", maxUnpacked)}),
			"more than 20971520 bytes unpacked"},
		"number of files": {testutil.PackChart(t, "c", many), "more than 1000 files"},
		"template":        {template(t, "{{ .Values.x | nope }}"), `function "nope" not defined`},
		"required value":  {template(t, `{{ required "set x" .Values.x }}`), "set x"},
		"not YAML":        {template(t, "a: ["), "templates/t.yaml"},
		"no kind":         {template(t, "metadata: {name: x}"), "each object needs apiVersion, kind and metadata.name"},
		"rendered size":   {template(t, `{{ repeat 1048577 "x" }}`), "more than 1048576 bytes"},
		"memory":          {template(t, `{{ repeat 100000000 "xxxxxxxx" }}`), "memory"},
		"schema":          {schema(`{"required": ["x"]}`), "missing property 'x'"},
		"file in schema":  {schema(`{"$ref": "file:///etc/hosts"}`), "only references within the schema"},
		"meta schema":     {schema(`{"$schema": "http://127.0.0.1/x"}`), "$schema is"},
		"name":            {testutil.PackChart(t, "c", map[string]string{"Chart.yaml": "apiVersion: v2\nname: ../c\nversion: 1\n"}), "name"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Render(t.Context(), request(test.archive))
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(invalid.Reason, test.says) {
				t.Errorf("%v, %v; it should say %q", objects, err, test.says)
			}
		})
	}
}

// TestSchemaWithinItself checks that references within a schema are allowed.
func TestSchemaWithinItself(t *testing.T) {
	r := request(testutil.PackChart(t, "c", map[string]string{"Chart.yaml": chartYAML, "templates/t.yaml": configMap,
		"values.schema.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"x": {"$ref": ` +
			`"#/definitions/n"}}, "definitions": {"n": {"type": "integer"}}}`}))
	if _, err := Render(t.Context(), r); err != nil {
		t.Error(err)
	}
	r.Values = map[string]any{"x": "y"}
	var invalid *InvalidError
	if _, err := Render(t.Context(), r); !errors.As(err, &invalid) || !strings.Contains(invalid.Reason, "want integer") {
		t.Errorf("a value that is no integer: %v", err)
	}
}

// TestTemplatesReachNothing checks that templates cannot access files, the environment, the network or the cluster.
func TestTemplatesReachNothing(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	t.Setenv("GARDENLITE_TEST", "secret")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := Render(t.Context(), request(template(t, configMap+`data:
  file: {{ .Files.Get "`+file+`" | quote }}
  outside: {{ .Files.Get "../../../../../../../../`+file+`" | quote }}
  lookup: {{ lookup "v1" "Secret" "garden" "" | toJson | quote }}
  name: {{ getHostByName "localhost" | quote }}
`)))
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(objects[0].Object, "data")
	if fmt.Sprint(data) != "map[file: lookup:{} name: outside:]" {
		t.Errorf("templates see %v", data)
	}
	for _, text := range []string{`{{ env "GARDENLITE_TEST" }}`, `{{ expandenv "$GARDENLITE_TEST" }}`} {
		var invalid *InvalidError
		if _, err := Render(t.Context(), request(template(t, text))); !errors.As(err, &invalid) ||
			!strings.Contains(invalid.Reason, "not defined") {
			t.Errorf("%s: %v", text, err)
		}
	}
	schema := testutil.PackChart(t, "c", map[string]string{"Chart.yaml": chartYAML, "values.schema.json": `{"$ref": "` + server.URL + `"}`})
	if _, err := Render(t.Context(), request(schema)); err == nil || asked.Load() > 0 {
		t.Errorf("a schema elsewhere: %v, asked for %d times", err, asked.Load())
	}
}

// TestRenderingEnds checks that an endless template is stopped with a meaningful error.
func TestRenderingEnds(t *testing.T) {
	endless := request(template(t, `{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}`))
	var invalid *InvalidError
	if _, err := renderWithin(t.Context(), endless, time.Second); !errors.As(err, &invalid) ||
		!strings.Contains(invalid.Reason, "more than 1s") {
		t.Errorf("it ends with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Render(ctx, endless); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, it ends with %v", err)
	}
}

// TestLimitedBuffer copies as exec does, which prefers a ReadFrom.
func TestLimitedBuffer(t *testing.T) {
	b := limitedBuffer{left: 4}
	if _, err := io.Copy(&b, struct{ io.Reader }{strings.NewReader("123456")}); err != nil || b.kept.String() != "1234" {
		t.Errorf("%q, %v", b.kept.String(), err)
	}
}
