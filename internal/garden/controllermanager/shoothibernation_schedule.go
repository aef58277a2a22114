package controllermanager

import (
	"cmp"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/robfig/cron/v3"
	"k8s.io/utils/ptr"
)

// schedule is a schedule by which a Shoot is hibernated or woken up.
type schedule struct {
	cron      cron.Schedule
	location  *time.Location
	hibernate bool
}

// parseSchedules parses the schedules of a Shoot. A schedule without a location is in UTC.
func parseSchedules(specs []corev1beta1.HibernationSchedule) ([]schedule, error) {
	var all []schedule
	for i, spec := range specs {
		location, err := time.LoadLocation(cmp.Or(ptr.Deref(spec.Location, ""), "UTC"))
		if err != nil {
			return nil, fmt.Errorf("reading spec.hibernation.schedules[%d].location: %w", i, err)
		}
		for _, end := range []struct {
			name      string
			text      *string
			hibernate bool
		}{{"start", spec.Start, true}, {"end", spec.End, false}} {
			if end.text == nil {
				continue
			}
			parsed, err := cron.ParseStandard(*end.text)
			if err != nil {
				return nil, fmt.Errorf("reading spec.hibernation.schedules[%d].%s: %w", i, end.name, err)
			}
			all = append(all, schedule{parsed, location, end.hibernate})
		}
	}
	return all, nil
}

// next returns the first scheduled time after t. It returns false if there is none, as for the 30th of February.
func (s schedule) next(t time.Time) (time.Time, bool) {
	next := s.cron.Next(t.In(s.location))
	return next, !next.IsZero()
}

// last returns the last scheduled time after from and not after to.
func (s schedule) last(from, to time.Time) (last time.Time, found bool) {
	for {
		next, ok := s.next(from)
		if !ok || next.After(to) {
			return last, found
		}
		last, from, found = next, next, true
	}
}

// dueSchedule returns the schedule with the latest scheduled time after from and not after to. Of two with the same time, the
// first counts.
func dueSchedule(all []schedule, from, to time.Time) (due schedule, found bool) {
	var latest time.Time
	for _, s := range all {
		if last, ok := s.last(from, to); ok && last.After(latest) {
			due, latest, found = s, last, true
		}
	}
	return due, found
}

// untilNext returns the duration until the next scheduled time of any schedule; 0 if there is none.
func untilNext(all []schedule, now time.Time) (wait time.Duration) {
	for _, s := range all {
		if next, ok := s.next(now); ok && (wait == 0 || next.Sub(now) < wait) {
			wait = next.Sub(now)
		}
	}
	return wait
}
