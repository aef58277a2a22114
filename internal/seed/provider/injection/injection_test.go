package injection

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func with(annotations map[string]string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Name: "x", Annotations: annotations}
}

// TestValue checks that a failure is read from an annotation as it was written.
func TestValue(t *testing.T) {
	for value, failure := range map[string]Failure{
		"once.7":                        {Once: true},
		"once.7:ERR_INFRA_DEPENDENCIES": {Once: true, Code: "ERR_INFRA_DEPENDENCIES"},
		"always:no luck":                {Text: "no luck"},
		"always:ERR_INFRA_UNAUTHENTICATED key: expired": {Code: "ERR_INFRA_UNAUTHENTICATED", Text: "key: expired"},
	} {
		got, err := failure.Value("7")
		if err != nil || got != value {
			t.Errorf("%+v: %q, %v", failure, got, err)
		}
		read, err := Parse(with(map[string]string{AnnotationFail: value}))
		if failure.Text == "" {
			failure.Text = "failure injected by the annotation " + AnnotationFail
		}
		if err != nil || *read.Failure != failure {
			t.Errorf("%s: %+v, %v", value, read.Failure, err)
		}
	}
	for says, failure := range map[string]Failure{
		"no error code": {Code: "ERR_NONE"}, `no error code "INFRA"`: {Code: "INFRA"},
		"give that as the code": {Text: "ERR_INFRA_DEPENDENCIES"},
		"1025 characters":       {Text: strings.Repeat("x", MaxText+1)},
	} {
		if _, err := failure.Value(""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", failure, err)
		}
	}
}

// TestPassFromShoot checks which annotations of a Shoot get to its resources.
func TestPassFromShoot(t *testing.T) {
	const own, from = "gardenlite.dev/fail", "gardenlite.dev/fail-from-garden"
	for name, test := range map[string]struct {
		kind            string
		shoot, to, want map[string]string
	}{
		"for all":        {"Worker", map[string]string{own: "once"}, nil, map[string]string{own: "once", from: own}},
		"not for others": {"Network", map[string]string{own: "once"}, nil, nil},
		"for the kind": {"Network", map[string]string{own + ".Network": "once"}, nil,
			map[string]string{own: "once", from: own + ".Network"}},
		"for another kind": {"Network", map[string]string{own + ".Worker": "once"}, nil, nil},
		"the kind counts more": {"Worker", map[string]string{own: "once", own + ".Worker": "always"}, nil,
			map[string]string{own: "always", from: own + ".Worker"}},
		"removed":                     {"Worker", nil, map[string]string{own: "once", from: own}, nil},
		"of the resource's own stays": {"Worker", nil, map[string]string{own: "once"}, map[string]string{own: "once"}},
	} {
		to := with(test.to)
		PassFromShoot(with(test.shoot), to, test.kind)
		if !maps.Equal(to.Annotations, test.want) {
			t.Errorf("%s: %v", name, to.Annotations)
		}
	}
	if !Same(with(map[string]string{"other": "x"}), with(nil)) ||
		Same(with(map[string]string{own + ".Worker": "once"}), with(nil)) {
		t.Error("a change is another one")
	}
}

// TestClaim has a failure of a Shoot happen to one of its resources, until it is another failure.
func TestClaim(t *testing.T) {
	resource := func(value string) *metav1.ObjectMeta {
		return with(map[string]string{AnnotationFail: value, AnnotationFail + fromGarden: AnnotationFail})
	}
	cluster := with(map[string]string{"other": "stays"})
	claims := func(kind, value string) bool {
		parsed, err := Parse(resource(value))
		if err != nil || parsed.Failure.Record != AnnotationFailed {
			t.Fatal(err, parsed.Failure)
		}
		record, isOwn := parsed.Failure.Claim(cluster.Annotations, kind, resource(value))
		if isOwn {
			cluster.Annotations[parsed.Failure.Record] = record
		}
		return isOwn
	}
	for _, step := range []struct {
		kind, value string
		want        bool
	}{
		{"Infrastructure", "once.1", true}, {"Infrastructure", "once.1", true}, {"Worker", "once.1", false},
		{"Worker", "once.2", true}, {"Infrastructure", "once.2", false},
	} {
		if got := claims(step.kind, step.value); got != step.want {
			t.Errorf("%+v: %t", step, got)
		}
	}
	ForgetClaims(with(map[string]string{AnnotationFail: "once.2"}), cluster)
	if claims("Infrastructure", "once.2") {
		t.Error("it is forgotten while it is requested")
	}
	ForgetClaims(with(nil), cluster)
	if !claims("Infrastructure", "once.2") || cluster.Annotations["other"] != "stays" {
		t.Errorf("it is not forgotten: %v", cluster.Annotations)
	}
}
