package controllermanager

import (
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

// installationWith returns a ControllerInstallation with the conditions Valid, Installed, Healthy and Progressing, in this
// order. Each character of statuses is T (True), F (False), U (Unknown), or - for a missing condition.
func installationWith(name, seed, statuses string) *corev1beta1.ControllerInstallation {
	i := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	i.Spec.SeedRef = &corev1.ObjectReference{Name: seed}
	for n, status := range statuses {
		if status == '-' {
			continue
		}
		i.Status.Conditions = append(i.Status.Conditions, corev1beta1.Condition{
			Type: extensionChecks[n].condition, Message: string(extensionChecks[n].condition) + " of " + name,
			Status: map[rune]corev1beta1.ConditionStatus{'T': corev1beta1.ConditionTrue, 'F': corev1beta1.ConditionFalse,
				'U': corev1beta1.ConditionUnknown}[status],
		})
	}
	return i
}

func TestReconcileSeedExtensionsCheck(t *testing.T) {
	for name, test := range map[string]struct {
		statuses []string
		reason   string
		// message is a part of the condition's message.
		message string
	}{
		"none":                   {nil, "AllExtensionsReady", ""},
		"good":                   {[]string{"TTTF", "TTTF"}, "AllExtensionsReady", ""},
		"not valid":              {[]string{"TTTF", "FTTF"}, "NotAllExtensionsValid", "b: Valid of b"},
		"not valid is the worst": {[]string{"FFFT", "TTTF"}, "NotAllExtensionsValid", "a: Valid of a"},
		"nothing known":          {[]string{"TTTF", "----"}, "NotAllExtensionsInstalled", "b: "},
		"not installed":          {[]string{"TFTF", "TFTF"}, "NotAllExtensionsInstalled", "a: Installed of a; b: Installed of b"},
		"not healthy":            {[]string{"TTTF", "TTFF"}, "NotAllExtensionsHealthy", "b: Healthy of b"},
		"not known to be":        {[]string{"TTTF", "TTUF"}, "NotAllExtensionsHealthy", "b: Healthy of b"},
		"something is missing":   {[]string{"TTTF", "TTT-"}, "NotAllExtensionsHealthy", "b: "},
		"progressing":            {[]string{"TTTF", "TTTT"}, "SomeExtensionsProgressing", "b: Progressing of b"},
	} {
		seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		objects := []client.Object{seed, installationWith("other", "other", "FFFF")}
		for i, statuses := range test.statuses {
			objects = append(objects, installationWith(string(rune('a'+i)), "s", statuses))
		}
		g := kittest.New(t, objects...)
		result := g.MustReconcile(reconcile.AsReconciler(g, &SeedExtensionsCheck{Base: g.Base()}), seed)
		c := conditions.Get(seed.Status.Conditions, corev1beta1.SeedExtensionsReady)
		if c == nil || c.Reason != test.reason || !strings.Contains(c.Message, test.message) || strings.Contains(c.Message, "other") ||
			(c.Status == corev1beta1.ConditionTrue) != (test.reason == "AllExtensionsReady") || result.RequeueAfter != DefaultSeedCheckSyncPeriod {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestThreshold(t *testing.T) {
	seed, i := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, installationWith("a", "s", "TTTF")
	g := kittest.New(t, seed, i)
	clock := testclock.NewFakeClock(kittest.Start)
	r := &SeedExtensionsCheck{Base: kit.Base{Client: g, Clock: clock}, Threshold: time.Minute}
	check := func(want corev1beta1.ConditionStatus) {
		t.Helper()
		g.MustReconcile(reconcile.AsReconciler(g, r), seed)
		if c := conditions.Get(seed.Status.Conditions, corev1beta1.SeedExtensionsReady); c.Status != want {
			t.Errorf("%+v, want %s", c, want)
		}
	}
	check(corev1beta1.ConditionTrue)
	i.Status.Conditions[2].Status = corev1beta1.ConditionFalse
	g.Must(g.Update(g.Context(), i))
	check(corev1beta1.ConditionProgressing)
	clock.Step(time.Minute)
	check(corev1beta1.ConditionProgressing)
	clock.Step(time.Second)
	check(corev1beta1.ConditionFalse)
}

func TestChangedSeedExtensionsCheck(t *testing.T) {
	base := installationWith("a", "s", "TTTF")
	for name, test := range map[string]struct {
		after *corev1beta1.ControllerInstallation
		want  bool
	}{
		"same":    {installationWith("a", "s", "TTTF"), false},
		"status":  {installationWith("a", "s", "TTTT"), true},
		"missing": {installationWith("a", "s", "TTT-"), true},
		"message": {installationWith("b", "s", "TTTF"), true},
	} {
		if installationChanged(base, test.after) != test.want || installationChanged(test.after, base) != test.want {
			t.Errorf("%s: want %v", name, test.want)
		}
	}
}
