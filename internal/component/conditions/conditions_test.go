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

const (
	yes     = corev1beta1.ConditionTrue
	no      = corev1beta1.ConditionFalse
	maybe   = corev1beta1.ConditionProgressing
	unknown = corev1beta1.ConditionUnknown
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestFailed(t *testing.T) {
	const threshold = time.Minute
	succeeded := func(ago time.Duration) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(start.Add(-ago))}
	}
	for name, test := range map[string]struct {
		before    corev1beta1.ConditionStatus
		reason    string
		since     time.Duration
		last      *corev1beta1.LastOperation
		threshold time.Duration
		want      corev1beta1.ConditionStatus
	}{
		"was well":                          {yes, "", time.Hour, nil, threshold, maybe},
		"was well, no threshold":            {yes, "", time.Hour, nil, -1, no},
		"fails for a short time":            {maybe, "Ill", threshold, nil, threshold, maybe},
		"fails for long":                    {maybe, "Ill", threshold + time.Second, nil, threshold, no},
		"fails for long, after a success":   {maybe, "Ill", time.Hour, succeeded(threshold), threshold, maybe},
		"fails for long, success long ago":  {maybe, "Ill", time.Hour, succeeded(2 * threshold), threshold, no},
		"still fails":                       {no, "Ill", time.Hour, nil, threshold, no},
		"still fails, after a success":      {no, "Ill", time.Hour, succeeded(time.Second), threshold, maybe},
		"fails for another reason":          {no, "Other", time.Hour, nil, threshold, maybe},
		"has never been looked at":          {unknown, "", 0, nil, threshold, no},
		"fails for another, no threshold":   {no, "Other", time.Hour, nil, -1, no},
		"progressing, and no threshold":     {maybe, "Ill", 0, nil, -1, no},
		"after a success, and no threshold": {no, "Ill", 0, succeeded(0), -1, no},
	} {
		before := Condition{Type: "X", Status: test.before, Reason: test.reason, LastTransitionTime: metav1.NewTime(start.Add(-test.since))}
		got := Failed(before, test.last, test.threshold, "Ill", "is ill", clocktesting.NewFakeClock(start))
		if want := (Condition{Type: "X", Status: test.want, Reason: "Ill", Message: "is ill"}); got.Status != want.Status ||
			got.Reason != want.Reason || got.Message != want.Message || got.Type != want.Type {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestSet(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	other := Condition{Type: "Other", Status: no}
	first, changed := Set([]Condition{other}, Condition{Type: "X", Status: yes, Reason: "A"}, clock)
	if !changed || len(first) != 2 || !first[1].LastTransitionTime.Time.Equal(start) {
		t.Fatalf("the first time: %v %+v", changed, first)
	}
	clock.Step(time.Hour)
	if same, changed := Set(first, Condition{Type: "X", Status: yes, Reason: "A"}, clock); changed ||
		!same[1].LastUpdateTime.Time.Equal(start) {
		t.Errorf("nothing new: %v %+v", changed, same)
	}
	reason, changed := Set(first, Condition{Type: "X", Status: yes, Reason: "B"}, clock)
	if !changed || !reason[1].LastTransitionTime.Time.Equal(start) || !reason[1].LastUpdateTime.Time.Equal(clock.Now()) {
		t.Errorf("another reason: %v %+v", changed, reason)
	}
	status, changed := Set(first, Condition{Type: "X", Status: no, Reason: "A"}, clock)
	if !changed || !status[1].LastTransitionTime.Time.Equal(clock.Now()) || status[0].Type != "Other" {
		t.Errorf("another status: %v %+v", changed, status)
	}
	if first[1].Status != yes || first[1].Reason != "A" {
		t.Error("what was given has changed")
	}
}

func TestFindAndWithout(t *testing.T) {
	all := []Condition{{Type: "X", Status: yes}, {Type: "Y", Status: no}}
	if c := Find(all, "Y"); c.Status != no {
		t.Errorf("found %+v", c)
	}
	if c := Find(all, "Z"); c.Type != "Z" || c.Status != unknown {
		t.Errorf("found %+v", c)
	}
	if rest, changed := Without(all, "X"); !changed || len(rest) != 1 || rest[0].Type != "Y" || len(all) != 2 {
		t.Errorf("without X: %v %+v", changed, rest)
	}
	if rest, changed := Without(all, "Z"); changed || len(rest) != 2 {
		t.Errorf("without Z: %v %+v", changed, rest)
	}
}

// TestPatchSeedLeavesOthersAlone writes conditions from a Seed that another controller has changed since it was read.
func TestPatchSeedLeavesOthersAlone(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status: corev1beta1.SeedStatus{Conditions: []Condition{{Type: "Mine", Status: no}, {Type: "Gone", Status: yes}}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(seed).WithStatusSubresource(seed).Build()
	read := &corev1beta1.Seed{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(seed), read); err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(start)
	write := func(seed *corev1beta1.Seed, kind corev1beta1.ConditionType) {
		t.Helper()
		if err := PatchSeed(t.Context(), c, seed, func(all []Condition) ([]Condition, bool) {
			all, _ = Without(all, "Gone")
			return Set(all, Condition{Type: kind, Status: yes}, clock)
		}); err != nil {
			t.Fatal(err)
		}
	}
	write(read.DeepCopy(), "Theirs")
	write(read, "Mine")
	now := &corev1beta1.Seed{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(seed), now); err != nil {
		t.Fatal(err)
	}
	if all := now.Status.Conditions; len(all) != 2 || Find(all, "Mine").Status != yes || Find(all, "Theirs").Status != yes {
		t.Errorf("the Seed has %+v", all)
	}
}
