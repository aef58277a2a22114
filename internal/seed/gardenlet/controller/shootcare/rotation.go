package shootcare

import (
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/utils/timewindow"

	"github.com/gardenlite/gardenlite/internal/component/schedule"
)

// rotatesAutomatically reports whether the etcd encryption key of a Shoot is rotated automatically.
func rotatesAutomatically(shoot *corev1beta1.Shoot) bool {
	config := keyRotation(shoot)
	return config != nil && config.RotationPeriod != nil && config.RotationPeriod.Duration != 0
}

func keyRotation(shoot *corev1beta1.Shoot) *corev1beta1.MaintenanceRotationConfig {
	m := shoot.Spec.Maintenance
	if m == nil || m.AutoRotation == nil || m.AutoRotation.Credentials == nil {
		return nil
	}
	return m.AutoRotation.Credentials.ETCDEncryptionKey
}

// rotationProblem reports a rotation of the etcd encryption key that is due and cannot begin in the next
// maintenance time window, because the Shoot is hibernated then.
func rotationProblem(shoot *corev1beta1.Shoot, now time.Time) *problem {
	done := corev1beta1.ETCDEncryptionKeyRotation{}
	if c := shoot.Status.Credentials; c != nil && c.Rotation != nil && c.Rotation.ETCDEncryptionKey != nil {
		done = *c.Rotation.ETCDEncryptionKey
	}
	due := schedule.IsRotationDue(shoot, keyRotation(shoot), done.LastCompletionTime, now)
	if !due || !sleepsInNextWindow(shoot, now) {
		return nil
	}
	return &problem{reason: "MaintenanceWindowDuringHibernation",
		message: "The etcd encryption key is due for its automatic rotation, but the Shoot is hibernated during its next " +
			"maintenance time window. Change spec.maintenance.timeWindow or spec.hibernation.schedules, so that it is " +
			"awake then."}
}

// sleepsInNextWindow reports whether the Shoot may be hibernated at some time in its next maintenance time window.
// As in Gardener, only the next hibernation and the next wake-up count, and a window that is open does not.
func sleepsInNextWindow(shoot *corev1beta1.Shoot, now time.Time) bool {
	m := shoot.Spec.Maintenance
	if m == nil || m.TimeWindow == nil {
		return false
	}
	window, err := timewindow.ParseMaintenanceTimeWindow(m.TimeWindow.Begin, m.TimeWindow.End)
	if err != nil {
		return false
	}
	schedules, err := schedule.HibernationsOf(shoot)
	if err != nil {
		return false
	}
	begin := window.AdjustedBegin(now.UTC())
	if !begin.After(now) {
		begin = begin.AddDate(0, 0, 1)
	}
	end := begin.Add(window.Duration())
	sleeps, wakes := earliest(schedules, true, now), earliest(schedules, false, now)
	wakesInTime := !wakes.IsZero() && !wakes.After(begin)
	switch {
	case shoot.Status.IsHibernated:
		return !wakesInTime || sleeps.After(wakes) && sleeps.Before(end)
	case sleeps.IsZero() || sleeps.After(end):
		return false
	}
	return !wakesInTime || wakes.Before(sleeps)
}

// earliest returns when the Shoot is hibernated or woken up next; zero if it is not.
func earliest(schedules []schedule.Hibernation, hibernates bool, now time.Time) (first time.Time) {
	for _, s := range schedules {
		if next, ok := s.Next(now); ok && s.Hibernates == hibernates && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}
