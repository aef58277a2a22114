package schedule

import (
	"cmp"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/robfig/cron/v3"
	"k8s.io/utils/ptr"
)

// Hibernation is a schedule by which a Shoot is hibernated or woken up.
type Hibernation struct {
	// Hibernates says that the Shoot is hibernated, not woken up.
	Hibernates bool

	cron     cron.Schedule
	location *time.Location
}

// HibernationsOf parses the schedules of a Shoot. A schedule without a location is in UTC.
func HibernationsOf(shoot *corev1beta1.Shoot) ([]Hibernation, error) {
	if shoot.Spec.Hibernation == nil {
		return nil, nil
	}
	var all []Hibernation
	for i, spec := range shoot.Spec.Hibernation.Schedules {
		location, err := time.LoadLocation(cmp.Or(ptr.Deref(spec.Location, ""), "UTC"))
		if err != nil {
			return nil, fmt.Errorf("reading spec.hibernation.schedules[%d].location: %w", i, err)
		}
		for _, end := range []struct {
			name       string
			text       *string
			hibernates bool
		}{{"start", spec.Start, true}, {"end", spec.End, false}} {
			if end.text == nil {
				continue
			}
			parsed, err := cron.ParseStandard(*end.text)
			if err != nil {
				return nil, fmt.Errorf("reading spec.hibernation.schedules[%d].%s: %w", i, end.name, err)
			}
			all = append(all, Hibernation{end.hibernates, parsed, location})
		}
	}
	return all, nil
}

// Next returns the first scheduled time after t. It returns false if there is none, as for the 30th of February.
func (h Hibernation) Next(t time.Time) (time.Time, bool) {
	next := h.cron.Next(t.In(h.location))
	return next, !next.IsZero()
}

// Last returns the last scheduled time after from and not after to.
func (h Hibernation) Last(from, to time.Time) (last time.Time, found bool) {
	for {
		next, ok := h.Next(from)
		if !ok || next.After(to) {
			return last, found
		}
		last, from, found = next, next, true
	}
}
