package conditions

import (
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// Condition is what is to be said now: the type, status, reason, message and codes of a condition.
type Condition = corev1beta1.Condition

// Find is the condition of a type; one that says Unknown, as it is before anything was looked at, if there is none.
func Find(conditions []Condition, kind corev1beta1.ConditionType) Condition {
	if i := index(conditions, kind); i >= 0 {
		return conditions[i]
	}
	return Condition{Type: kind, Status: corev1beta1.ConditionUnknown}
}

// Get is the condition of a type, nil if there is none.
func Get(conditions []Condition, kind corev1beta1.ConditionType) *Condition {
	if i := index(conditions, kind); i >= 0 {
		return &conditions[i]
	}
	return nil
}

// IsTrue says whether there is a condition of a type with the status True.
func IsTrue(conditions []Condition, kind corev1beta1.ConditionType) bool {
	return Find(conditions, kind).Status == corev1beta1.ConditionTrue
}

// Set is a copy of the conditions with one that says something else now, and whether it does. Its time of transition
// changes with its status only.
func Set(conditions []Condition, now Condition, c clock.PassiveClock) ([]Condition, bool) {
	now.LastUpdateTime = metav1.NewTime(c.Now())
	now.LastTransitionTime = now.LastUpdateTime
	all := slices.Clone(conditions)
	i := index(all, now.Type)
	if i < 0 {
		return append(all, now), true
	}
	before := all[i]
	if before.Status == now.Status {
		now.LastTransitionTime = before.LastTransitionTime
		if before.Reason == now.Reason && before.Message == now.Message && slices.Equal(before.Codes, now.Codes) {
			return all, false
		}
	}
	all[i] = now
	return all, true
}

// Without is a copy of the conditions without those of a type, and whether there was one.
func Without(conditions []Condition, kind corev1beta1.ConditionType) ([]Condition, bool) {
	rest := slices.DeleteFunc(slices.Clone(conditions), func(c Condition) bool { return c.Type == kind })
	return rest, len(rest) < len(conditions)
}

// Failed is the condition after a check has failed. What was True is Progressing for as long as the threshold says, and so
// it is after an operation has succeeded, and when what was False fails for another reason: it may be about to recover.
func Failed(before Condition, last *corev1beta1.LastOperation, threshold time.Duration, reason, message string,
	c clock.PassiveClock) Condition {
	now := Condition{Type: before.Type, Status: corev1beta1.ConditionFalse, Reason: reason, Message: message}
	if threshold <= 0 {
		return now
	}
	fresh := last != nil && last.State == corev1beta1.LastOperationStateSucceeded && c.Since(last.LastUpdateTime.Time) <= threshold
	patient := false
	switch before.Status {
	case corev1beta1.ConditionTrue:
		patient = true
	case corev1beta1.ConditionProgressing:
		patient = fresh || c.Since(before.LastTransitionTime.Time) <= threshold
	case corev1beta1.ConditionFalse:
		patient = fresh || before.Reason != reason
	}
	if patient {
		now.Status = corev1beta1.ConditionProgressing
	}
	return now
}

// Patient is a condition that is not good any more as long as it may be about to recover: what was True is Progressing for
// as long as the threshold says. Other than with Failed, another reason or the success of an operation is no new occasion.
func Patient(before *Condition, now Condition, threshold time.Duration, c clock.PassiveClock) Condition {
	if before == nil || now.Status == corev1beta1.ConditionTrue || threshold <= 0 {
		return now
	}
	if before.Status == corev1beta1.ConditionTrue ||
		before.Status == corev1beta1.ConditionProgressing && c.Since(before.LastTransitionTime.Time) <= threshold {
		now.Status = corev1beta1.ConditionProgressing
	}
	return now
}

// Unchecked is the condition after it could not be found out how things are.
func Unchecked(kind corev1beta1.ConditionType, err error) Condition {
	return Condition{Type: kind, Status: corev1beta1.ConditionUnknown, Reason: corev1beta1.ConditionCheckError, Message: err.Error()}
}

func index(conditions []Condition, kind corev1beta1.ConditionType) int {
	return slices.IndexFunc(conditions, func(c Condition) bool { return c.Type == kind })
}
