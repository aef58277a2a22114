package schedule

import (
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsRotationDue reports whether the rotation period has passed since the last rotation, or since the creation of
// the Shoot if there was none. Without a period, no rotation is due.
func IsRotationDue(shoot *corev1beta1.Shoot, config *corev1beta1.MaintenanceRotationConfig, last *metav1.Time,
	now time.Time) bool {
	if config == nil || config.RotationPeriod == nil || config.RotationPeriod.Duration == 0 {
		return false
	}
	since := shoot.CreationTimestamp.Time
	if last != nil {
		since = last.Time
	}
	return since.Before(now.Add(-config.RotationPeriod.Duration))
}
