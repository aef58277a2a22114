package seedstatus

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func TestWrite(t *testing.T) {
	const (
		good, bad, unknown, progressing = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown, corev1beta1.ConditionProgressing
		none                            = corev1beta1.ConditionStatus("")
	)
	for name, test := range map[string]struct {
		before    corev1beta1.ConditionStatus
		age       time.Duration
		now       corev1beta1.ConditionStatus
		threshold time.Duration
		want      corev1beta1.ConditionStatus
	}{
		"new and good":              {none, 0, good, time.Minute, good},
		"new and bad":               {none, 0, bad, time.Minute, bad},
		"bad at once":               {good, 0, bad, 0, bad},
		"progressing first":         {good, time.Hour, bad, time.Minute, progressing},
		"progressing for a while":   {progressing, time.Minute, bad, time.Minute, progressing},
		"progressing for too long":  {progressing, time.Minute + 1, bad, time.Minute, bad},
		"unknown in the end":        {progressing, time.Hour, unknown, time.Minute, unknown},
		"bad all the time":          {bad, 0, bad, time.Minute, bad},
		"good again":                {progressing, 0, good, time.Minute, good},
		"progressing, no threshold": {progressing, 0, bad, 0, bad},
	} {
		seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		other := corev1beta1.Condition{Type: "Other", Status: good}
		seed.Status.Conditions = []corev1beta1.Condition{other}
		if test.before != none {
			seed.Status.Conditions = append(seed.Status.Conditions, corev1beta1.Condition{Type: "A", Status: test.before, LastTransitionTime: metav1.NewTime(kittest.Start)})
		}
		g := kittest.New(t, seed)
		g.Exists(seed)
		g.After(test.age)
		g.Must(Write(g.Context(), g, g.Clock, seed, corev1beta1.Condition{Type: "A", Status: test.now, Reason: "R"}, test.threshold))
		g.Exists(seed)
		if c := kit.Condition(seed.Status.Conditions, "A"); c == nil || c.Status != test.want || len(seed.Status.Conditions) != 2 {
			t.Errorf("%s: %+v", name, seed.Status.Conditions)
		}
	}
}

// TestWriteConflict: what somebody else has reported meanwhile is not undone.
func TestWriteConflict(t *testing.T) {
	g := kittest.New(t, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	stale, current := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	g.Exists(stale)
	g.Exists(current)
	g.Must(Write(g.Context(), g, g.Clock, current, corev1beta1.Condition{Type: "A", Status: "True"}, 0))
	if err := Write(g.Context(), g, g.Clock, stale, corev1beta1.Condition{Type: "B", Status: "True"}, 0); err == nil {
		t.Error("no conflict")
	}
}
