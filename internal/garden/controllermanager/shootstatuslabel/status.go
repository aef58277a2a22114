package shootstatuslabel

import (
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// The values of the label, the same as in Gardener.
const (
	Healthy     = "healthy"
	Progressing = "progressing"
	Unknown     = "unknown"
	Unhealthy   = "unhealthy"
)

// ranks are the values from the worst to the best.
var ranks = []string{Unhealthy, Unknown, Progressing, Healthy}

// Rank returns the rank of a label value: the better the status, the higher.
func Rank(status string) int { return slices.Index(ranks, status) }

// Status returns the value of the label for a Shoot.
func Status(shoot *corev1beta1.Shoot) string {
	operation := shoot.Status.LastOperation
	if operation == nil {
		return Healthy // Nothing has been tried yet.
	}
	succeeded, withoutErrors := operation.State == corev1beta1.LastOperationStateSucceeded, len(shoot.Status.LastErrors) == 0
	creating := operation.Type == corev1beta1.LastOperationTypeCreate && !succeeded
	switch {
	case creating || operation.Type == corev1beta1.LastOperationTypeDelete:
		// The conditions say nothing while the Shoot is not complete.
		return healthyIf(withoutErrors)
	case operation.State == corev1beta1.LastOperationStateProcessing:
		return worse(healthyIf(withoutErrors), ofConditions(shoot.Status.Conditions))
	default:
		return worse(healthyIf(succeeded), ofConditions(shoot.Status.Conditions))
	}
}

func ofConditions(conditions []corev1beta1.Condition) string {
	status := Healthy
	for _, condition := range conditions {
		switch condition.Status {
		case corev1beta1.ConditionTrue:
		case corev1beta1.ConditionProgressing:
			status = worse(status, Progressing)
		case corev1beta1.ConditionUnknown:
			status = worse(status, Unknown)
		default:
			return Unhealthy
		}
	}
	return status
}

func healthyIf(is bool) string {
	if is {
		return Healthy
	}
	return Unhealthy
}

func worse(a, b string) string {
	if Rank(b) < Rank(a) {
		return b
	}
	return a
}
