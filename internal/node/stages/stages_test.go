package stages

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// stage returns the player of one Stage, which a label selects and which has this template of a status.
func stage(t *testing.T, template string) *Player {
	t.Helper()
	text := `
metadata: {name: x}
spec:
  resourceRef: {kind: Pod}
  selector:
    matchLabels: {chaos: "true"}
    matchExpressions: [{key: .status.phase, operator: In, values: [Running]}]
  delay: {durationMilliseconds: 1500}
  next:
    event: {type: Warning, reason: Broken, message: it broke}
    statusTemplate: ` + string(must(json.Marshal(template)))
	s := v1alpha1.Stage{}
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	p, err := New([]v1alpha1.Stage{s})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"chaos": "true"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// play plays the next Stage, and returns its patches and events.
func play(t *testing.T, p *Player) (patches []lifecycle.Patch, events []string, err error) {
	t.Helper()
	next, err := p.Next(t.Context(), pod(), now)
	if err != nil || next == nil {
		t.Fatalf("next is %v, %v", next, err)
	}
	if next.Delay != 1500*time.Millisecond {
		t.Errorf("it comes after %s", next.Delay)
	}
	err = next.Play(pod(), now, Addresses{Node: []string{"10.0.0.1"}, Pod: []string{"100.0.0.2"}}, Actions{
		Event: func(kind, reason, message string) { events = append(events, kind+" "+reason+" "+message) },
		Patch: func(patch *lifecycle.Patch) error { patches = append(patches, *patch); return nil },
	})
	return patches, events, err
}

// TestStage plays a Stage for the Pods that it selects.
func TestStage(t *testing.T) {
	p := stage(t, `{{ $now := Now }}
phase: Failed
startTime: {{ $now | Quote }}
podIP: {{ PodIPWith .spec.nodeName false "" "" "" | Quote }}
hostIP: {{ NodeIP | Quote }}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, restartCount: {{ add 1 1 }}}
{{ end }}`)
	patches, events, err := play(t, p)
	if err != nil || len(patches) != 1 || len(events) != 1 || events[0] != "Warning Broken it broke" {
		t.Fatalf("patches %+v, events %v, %v", patches, events, err)
	}
	want := `{"status":{"containerStatuses":[{"name":"a","restartCount":2},{"name":"b","restartCount":2}],` +
		`"hostIP":"10.0.0.1","phase":"Failed","podIP":"100.0.0.2","startTime":"2030-01-01T00:00:00Z"}}`
	if got := string(patches[0].Data); got != want || patches[0].Subresource != "status" {
		t.Errorf("the patch of %q is\n%s, not\n%s", patches[0].Subresource, got, want)
	}
	for _, change := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Labels = nil }, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
	} {
		other := pod()
		change(other)
		if next, err := p.Next(t.Context(), other, now); next != nil || err != nil {
			t.Errorf("for %+v comes %v, %v", other, next, err)
		}
	}
}

// TestStageInNamespace checks that objects of a namespaced CRD with the name of KWOK's do not count.
func TestStageInNamespace(t *testing.T) {
	s := v1alpha1.Stage{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1alpha1.StageSpec{
		ResourceRef: v1alpha1.StageResourceRef{Kind: "Pod"}, Selector: &v1alpha1.StageSelector{MatchLabels: map[string]string{"chaos": "true"}}}}
	for namespace, want := range map[string]bool{"": true, "default": false} {
		s.Namespace = namespace
		p, err := New([]v1alpha1.Stage{s})
		if err != nil {
			t.Fatal(err)
		}
		if next, err := p.Next(t.Context(), pod(), now); (next != nil) != want || err != nil {
			t.Errorf("in the namespace %q: next is %v, %v", namespace, next, err)
		}
	}
}

// TestHostileTemplates checks that a template cannot read data of this process, or exhaust its time or memory.
func TestHostileTemplates(t *testing.T) {
	if os.Setenv("SECRET_OF_THE_USER", "x") != nil {
		t.Fatal()
	}
	defer os.Unsetenv("SECRET_OF_THE_USER")
	for template, want := range map[string]string{
		`phase: {{ env "SECRET_OF_THE_USER" }}`:                                           `function "env" not defined`,
		`phase: {{ expandenv "$SECRET_OF_THE_USER" }}`:                                    `function "expandenv" not defined`,
		`phase: {{ getHostByName "example.com" }}`:                                        `function "getHostByName" not defined`,
		`phase: {{ genPrivateKey "rsa" }}`:                                                `function "genPrivateKey" not defined`,
		`phase: {{ repeat 1000000000 "x" }}`:                                              `function "repeat" not defined`,
		`{{ range until 1000000000 }}x{{ end }}`:                                          `function "until" not defined`,
		`{{ $d := dict }}{{ $d = set $d "x" $d }}`:                                        `function "set" not defined`,
		`{{ printf "%1000000d" 1 }}`:                                                      "more than three digits",
		`{{ printf "%[2]*[1]d" 1 1000000 }}`:                                              "more than three digits",
		`{{ $x := "xxxxxxxx" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}`:             "than",
		`{{ $x := "xxxxxxxx" }}{{ range 60 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`:     "than",
		`{{ $x := "xxxxxxxx" }}{{ range 60 }}{{ $x = replace "x" $x $x }}{{ end }}`:       "than",
		`{{ $x := list 1 }}{{ range 60 }}{{ $x = concat $x $x }}{{ end }}`:                "than",
		`{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}`:   "than",
		`{{ $x := dict }}{{ range 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ $x }}`:    "than",
		`{{ $x := "<" }}{{ range 60 }}{{ $x = js $x }}{{ end }}`:                          "than",
		`{{ define "a" }}{{ template "a" (js . .) }}{{ end }}{{ template "a" "xxxxxx" }}`: "than",
		"a: &x [1]\nb: [*x, *x]":                                                          "aliases are not allowed",
		`{{ range 1000000000 }}x{{ end }}`:                                                "than",
		`{{ range 1000000000000 }}{{ end }}`:                                              "longer than 1s",

		`{{ range 1000000000000 }}{{ if . }}{{ else }}{{ range 1000000000000 }}{{ end }}{{ end }}{{ end }}`:       "longer than 1s",
		`{{ define "a" }}{{ template "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`:                         "",
		`{{ define "a" }}{{ range 1000000000000 }}{{ end }}{{ end }}{{ with 1 }}{{ template "a" }}{{ end }}`:      "longer than 1s",
		`{{ define "a" }}{{ range 1000000000000 }}{{ end }}{{ end }}{{ block "b" . }}{{ template "a" }}{{ end }}`: "longer than 1s",
	} {
		patches, _, err := play(t, stage(t, template))
		if err == nil || !strings.Contains(err.Error(), want) || len(patches) > 0 {
			t.Errorf("%s: %v, %+v", template, err, patches)
		}
	}
}

// TestHostileNumbers checks that weights and delays for which KWOK panics are errors.
func TestHostileNumbers(t *testing.T) {
	hostile := pod()
	hostile.Annotations = map[string]string{"weight": "-1", "delay": "-2562047h47m16s"}
	for _, text := range []string{
		`spec: {resourceRef: {kind: Pod}, selector: {}, weight: -1}`,
		`spec: {resourceRef: {kind: Pod}, selector: {}, weightFrom: {expressionFrom: .metadata.annotations.weight}}`,
		`spec: {resourceRef: {kind: Pod}, selector: {}, delay: {durationFrom: {expressionFrom: .metadata.annotations.delay},
  jitterDurationMilliseconds: 1000}}`,
	} {
		s := v1alpha1.Stage{}
		if err := yaml.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		p, err := New([]v1alpha1.Stage{s, s})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Next(t.Context(), hostile, now); err == nil || !strings.Contains(err.Error(), "Int63n") {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// TestJQ checks that expressions may read and compare, and nothing by which values grow.
func TestJQ(t *testing.T) {
	for expression, want := range map[string]string{
		`.metadata.annotations["pod-create.stage.kwok.x-k8s.io/delay"]`:                         "",
		`.status.conditions.[] | select( .type == "Ready" ) | .status`:                          "",
		`.spec.containers | length > 1 and (.[0:1] | any(.name | startswith("a"))) // .status?`: "",
		`"x" * 1000000`:                 "operator *",
		`.metadata.name | . + .`:        "operator +",
		`.status[.metadata.name + "x"]`: "operator +",
		`.["\(.)"]`:                     "interpolation",
		`.[(1 * 2):]`:                   "operator *",
		`first("a" * 2)`:                "operator *",
		`"\(.)"`:                        "interpolation",
		`[., .]`:                        "is not supported",
		`{a: .}`:                        "is not supported",
		`..`:                            "is not supported",
		`-(1 * 2)`:                      "is not supported",
		`if . then 1 else 2 end`:        "is not supported",
		`reduce .[] as $x (0; .)`:       "is not supported",
		`foreach .[] as $x (0; .)`:      "is not supported",
		`label $x | break $x`:           "is not supported",
		`try error("x")`:                "is not supported",
		`@base64`:                       "is not supported",
		`def f: f; f`:                   "definitions and variables",
		`. as $x | $x`:                  "definitions and variables",
		`.[range(10)]`:                  "the function range",
		`$ENV`:                          "the function $ENV",
		`(`:                             "unexpected",
	} {
		if err := checkJQ(expression); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

// deepStage has an expression that would exhaust the stack, which ends the process.
var deepStage = `spec: {resourceRef: {kind: Pod}, selector: {matchExpressions: [{operator: Exists, key: "` +
	strings.Repeat("[", 300_000) + "1" + strings.Repeat("]", 300_000) + `"}]}}`

// TestHostileStages checks that expressions are interrupted, and that unsupported Stages are left out.
func TestHostileStages(t *testing.T) {
	endless := strings.Repeat("(.,.)|", 60) + "."
	for text, want := range map[string]string{
		`spec: {resourceRef: {kind: Pod}, selector: {matchExpressions: [{operator: Exists, key: "` + endless + `"}]}}`: "-",

		`spec: {resourceRef: {kind: Pod}, selector: {matchExpressions: [{cel: {expression: "true"}}]}}`:        "CEL",
		`spec: {resourceRef: {kind: Pod}, selector: {}, weightFrom: {cel: {expression: "1"}}}`:                 "CEL",
		`spec: {resourceRef: {kind: Pod}, selector: {}, delay: {durationFrom: {cel: {expression: "1"}}}}`:      "CEL",
		`spec: {resourceRef: {kind: Pod}, selector: {}, steps: [{apply: {template: x}}]}`:                      "apply",
		`spec: {resourceRef: {kind: Pod}, selector: {}, steps: [{patch: {impersonation: {username: admin}}}]}`: "impersonation",
		`spec: {resourceRef: {kind: Pod}, selector: {matchExpressions: [{key: "(", operator: Exists}]}}`:       "",
		deepStage: "more than 65536 bytes",
		`spec: {resourceRef: {kind: Pod}, selector: {matchExpressions: [{key: ".a", operator: Between}]}}`:           "",
		`spec: {resourceRef: {kind: Node}, selector: {matchExpressions: [{cel: {expression: "for others"}}]}}`:       "-",
		`spec: {resourceRef: {kind: Pod}, selector: {matchExpressions: [{key: "[range(1e12)]", operator: Exists}]}}`: "not supported",
	} {
		s := v1alpha1.Stage{}
		if err := yaml.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		p, err := New([]v1alpha1.Stage{s})
		if want == "-" && err != nil || want != "-" && (err == nil || !strings.Contains(err.Error(), want) || len(p.stages) > 0) {
			t.Errorf("%s: %v", text, err)
		}
		if next, err := p.Next(t.Context(), pod(), now); next != nil {
			t.Errorf("%s: next is %v, %v", text, next, err)
		}
	}
	many := make([]v1alpha1.Stage, MaxStages+1)
	for i := range many {
		many[i].Spec = v1alpha1.StageSpec{ResourceRef: v1alpha1.StageResourceRef{Kind: "Pod"}, Selector: &v1alpha1.StageSelector{}}
	}
	if p, err := New(many); err == nil || len(p.stages) != MaxStages {
		t.Errorf("%d Stages count: %v", len(p.stages), err)
	}
}

// TestRequestsTakeTime plays a Stage with an Event and a patch while the API server takes its time for the Event.
func TestRequestsTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := must(stage(t, "phase: Failed").Next(t.Context(), pod(), now))
		patches := 0
		err := next.Play(pod(), now, Addresses{}, Actions{
			Event: func(string, string, string) { time.Sleep(10 * timeout) },
			Patch: func(*lifecycle.Patch) error { patches++; return nil },
		})
		if err != nil || patches != 1 {
			t.Errorf("%d patches, %v", patches, err)
		}
	})
}
