package kit

import (
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// Condition is the condition of a type, nil if there is none.
func Condition(conditions []corev1beta1.Condition, kind corev1beta1.ConditionType) *corev1beta1.Condition {
	i := slices.IndexFunc(conditions, func(c corev1beta1.Condition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// IsTrue says whether there is a condition of a type with the status True.
func IsTrue(conditions []corev1beta1.Condition, kind corev1beta1.ConditionType) bool {
	c := Condition(conditions, kind)
	return c != nil && c.Status == corev1beta1.ConditionTrue
}

// SetCondition is a copy of the conditions with one that says something else now, and whether it does. Its time of
// transition changes with its status only.
func SetCondition(conditions []corev1beta1.Condition, now corev1beta1.Condition, c clock.PassiveClock) ([]corev1beta1.Condition, bool) {
	now.LastUpdateTime = metav1.NewTime(c.Now())
	now.LastTransitionTime = now.LastUpdateTime
	all := slices.Clone(conditions)
	before := Condition(all, now.Type)
	if before == nil {
		return append(all, now), true
	}
	if before.Status == now.Status {
		now.LastTransitionTime = before.LastTransitionTime
	}
	changed := before.Status != now.Status || before.Reason != now.Reason || before.Message != now.Message || !slices.Equal(before.Codes, now.Codes)
	if changed {
		*before = now
	}
	return all, changed
}

// WithoutCondition is a copy of the conditions without those of a type.
func WithoutCondition(conditions []corev1beta1.Condition, kind corev1beta1.ConditionType) []corev1beta1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c corev1beta1.Condition) bool { return c.Type == kind })
}

// SeedConditionsTrue is an error unless a Seed has the conditions that a working Seed has.
func SeedConditionsTrue(seed *corev1beta1.Seed) error {
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.GardenletReady, corev1beta1.SeedSystemComponentsHealthy} {
		condition := Condition(seed.Status.Conditions, kind)
		if condition == nil {
			return fmt.Errorf("the condition %s is missing", kind)
		}
		if condition.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("the condition %s is %s, not True: %s: %s", kind, condition.Status, condition.Reason, condition.Message)
		}
	}
	return nil
}
