package conditions

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Condition is a condition of an object. Set sets the timestamps, callers set all other fields.
type Condition = corev1beta1.Condition

// Find returns the condition of a type. If there is none, it returns one with the status Unknown, as before any check.
func Find(conditions []Condition, kind corev1beta1.ConditionType) Condition {
	return ptr.Deref(Get(conditions, kind), Condition{Type: kind, Status: corev1beta1.ConditionUnknown})
}

// Get returns the condition of a type, nil if there is none.
func Get(conditions []Condition, kind corev1beta1.ConditionType) *Condition {
	if i := index(conditions, kind); i >= 0 {
		return &conditions[i]
	}
	return nil
}

// IsTrue reports whether there is a condition of a type with the status True.
func IsTrue(conditions []Condition, kind corev1beta1.ConditionType) bool {
	return Find(conditions, kind).Status == corev1beta1.ConditionTrue
}

// Set returns a copy of the conditions that contains the given one, and whether it differs from before. The time of the
// last transition changes only with the status.
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

// Without returns a copy of the conditions without those of a type, and whether there were any.
func Without(conditions []Condition, kind corev1beta1.ConditionType) ([]Condition, bool) {
	rest := slices.DeleteFunc(slices.Clone(conditions), func(c Condition) bool { return c.Type == kind })
	return rest, len(rest) < len(conditions)
}

// Failed returns the condition after a failed check. A condition that was True is Progressing until the threshold has
// passed. So it is within the threshold after a successful operation, and if a condition that was False fails for
// another reason, because the object may be about to recover.
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

// ProgressingWithinThreshold returns the condition for a check result that is not True: a condition that was True is Progressing until the
// threshold has passed. Unlike with Failed, another reason or a successful operation does not start a new period.
func ProgressingWithinThreshold(before *Condition, now Condition, threshold time.Duration, c clock.PassiveClock) Condition {
	if before == nil || now.Status == corev1beta1.ConditionTrue || threshold <= 0 {
		return now
	}
	if before.Status == corev1beta1.ConditionTrue ||
		before.Status == corev1beta1.ConditionProgressing && c.Since(before.LastTransitionTime.Time) <= threshold {
		now.Status = corev1beta1.ConditionProgressing
	}
	return now
}

// Unchecked returns the condition of an object whose check could not be carried out.
func Unchecked(kind corev1beta1.ConditionType, err error) Condition {
	return Condition{Type: kind, Status: corev1beta1.ConditionUnknown, Reason: corev1beta1.ConditionCheckError, Message: err.Error()}
}

func index(conditions []Condition, kind corev1beta1.ConditionType) int {
	return slices.IndexFunc(conditions, func(c Condition) bool { return c.Type == kind })
}

// PatchSeed writes those conditions of a Seed that mutate changes, and no others, with a strategic merge patch by their
// types: other controllers may write their conditions at the same time.
func PatchSeed(ctx context.Context, c client.Client, seed *corev1beta1.Seed, mutate func([]Condition) ([]Condition, bool)) error {
	return patchSeed(ctx, c, seed, &seed.Status.Conditions, mutate)
}

// PatchSeedConstraints is like PatchSeed, for constraints.
func PatchSeedConstraints(ctx context.Context, c client.Client, seed *corev1beta1.Seed,
	mutate func([]Condition) ([]Condition, bool)) error {
	return patchSeed(ctx, c, seed, &seed.Status.Constraints, mutate)
}

// patchSeed writes one of the lists of conditions of a Seed.
func patchSeed(ctx context.Context, c client.Client, seed *corev1beta1.Seed, of *[]Condition,
	mutate func([]Condition) ([]Condition, bool)) error {
	before := seed.DeepCopy()
	all, changed := mutate(*of)
	if !changed {
		return nil
	}
	*of = all
	if err := c.Status().Patch(ctx, seed, client.StrategicMergeFrom(before)); err != nil {
		return fmt.Errorf("writing the conditions of Seed %s: %w", seed.Name, err)
	}
	return nil
}

// WriteSeed writes a condition of a Seed, if it has changed. A condition that was True stays Progressing until the
// check has failed for longer than the threshold.
func WriteSeed(ctx context.Context, c client.Client, clk clock.PassiveClock, seed *corev1beta1.Seed, now Condition,
	threshold time.Duration) error {
	return PatchSeed(ctx, c, seed, func(all []Condition) ([]Condition, bool) {
		return Set(all, ProgressingWithinThreshold(Get(all, now.Type), now, threshold, clk), clk)
	})
}
