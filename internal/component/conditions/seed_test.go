package conditions

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestWriteSeed(t *testing.T) {
	const (
		good, bad, unknown, progressing = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown,
			corev1beta1.ConditionProgressing
		none = corev1beta1.ConditionStatus("")
	)
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
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
			seed.Status.Conditions = append(seed.Status.Conditions,
				corev1beta1.Condition{Type: "A", Status: test.before, LastTransitionTime: metav1.NewTime(start)})
		}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed).WithStatusSubresource(seed).Build()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
			t.Fatal(err)
		}
		clk := clocktesting.NewFakeClock(start.Add(test.age))
		if err := WriteSeed(t.Context(), c, clk, seed, Condition{Type: "A", Status: test.now, Reason: "R"}, test.threshold); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(seed), seed); err != nil {
			t.Fatal(err)
		}
		if c := Get(seed.Status.Conditions, "A"); c == nil || c.Status != test.want || len(seed.Status.Conditions) != 2 {
			t.Errorf("%s: %+v", name, seed.Status.Conditions)
		}
	}
}
