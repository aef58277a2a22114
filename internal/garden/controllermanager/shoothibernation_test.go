package controllermanager

import (
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func daily(start, end, location string) corev1beta1.HibernationSchedule {
	s := corev1beta1.HibernationSchedule{}
	if start != "" {
		s.Start = &start
	}
	if end != "" {
		s.End = &end
	}
	if location != "" {
		s.Location = &location
	}
	return s
}

func shootWithSchedules(enabled bool, schedules ...corev1beta1.HibernationSchedule) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x", CreationTimestamp: metav1.NewTime(kittest.Start)}}
	s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(enabled), Schedules: schedules}
	return s
}

func afterStart(d time.Duration) *metav1.Time {
	return ptr.To(metav1.NewTime(kittest.Start.Add(d)))
}

// TestSchedules starts at midnight, UTC, on a Thursday.
func TestSchedules(t *testing.T) {
	night := daily("0 20 * * *", "0 8 * * *", "")
	const hour = time.Hour
	for name, test := range map[string]struct {
		shoot     *corev1beta1.Shoot
		last      *metav1.Time
		after     time.Duration
		deadline  time.Duration
		failed    bool
		sleeps    bool
		triggered bool
		again     time.Duration
	}{
		"before its time": {shoot: shootWithSchedules(false, night), after: 7 * hour, again: hour},
		"falls asleep":    {shoot: shootWithSchedules(false, night), after: 20 * hour, sleeps: true, triggered: true, again: 12 * hour},
		"wakes up":        {shoot: shootWithSchedules(true, night), after: 8 * hour, triggered: true, again: 12 * hour},
		"once only":       {shoot: shootWithSchedules(false, night), last: afterStart(20 * hour), after: 21 * hour, again: 11 * hour},
		"made up for": {shoot: shootWithSchedules(false, night), after: 21*hour + 59*time.Minute, sleeps: true,
			triggered: true, again: 10*hour + time.Minute},
		"too late": {shoot: shootWithSchedules(false, night), after: 22*hour + time.Minute, again: 10*hour - time.Minute},
		"with another deadline": {shoot: shootWithSchedules(false, night), deadline: 6 * hour, after: 23 * hour, sleeps: true,
			triggered: true, again: 9 * hour},
		"not before it was created": {shoot: shootWithSchedules(false, daily("59 23 * * *", "", "")), after: hour, again: 23*hour - time.Minute},
		"in Berlin": {shoot: shootWithSchedules(false, daily("0 20 * * *", "", "Europe/Berlin")), after: 19 * hour,
			sleeps: true, triggered: true, again: 24 * hour},
		"not yet in New York": {shoot: shootWithSchedules(false, daily("0 20 * * *", "", "America/New_York")),
			after: 20 * hour, again: 5 * hour},
		"the later of two": {shoot: shootWithSchedules(false, daily("0 20 * * *", "30 20 * * *", "")), after: 21 * hour,
			triggered: true, again: 23 * hour},
		"on weekdays":     {shoot: shootWithSchedules(false, daily("0 20 * * 5", "", "")), after: 20 * hour, again: 24 * hour},
		"failed for good": {shoot: shootWithSchedules(false, night), failed: true, after: 20 * hour, again: 12 * hour},
		"without a start": {shoot: shootWithSchedules(true, daily("", "0 8 * * *", "")), after: 8 * hour,
			triggered: true, again: 24 * hour},
		"never":                        {shoot: shootWithSchedules(false, daily("0 0 30 2 *", "", "")), after: 8 * hour},
		"cannot be read":               {shoot: shootWithSchedules(false, daily("often", "", "")), after: 8 * hour},
		"in a place that there is not": {shoot: shootWithSchedules(false, daily("0 20 * * *", "", "Moon/Crater")), after: 20 * hour},
		"without schedules":            {shoot: shootWithSchedules(false), after: 8 * hour},
		"sleeping already, which is noted": {shoot: shootWithSchedules(true, night), after: 20 * hour, sleeps: true, triggered: true,
			again: 12 * hour},
		"woken up by hand, left as it is so": {shoot: shootWithSchedules(false, night), last: afterStart(20 * hour), after: 20*hour + time.Minute,
			again: 12*hour - time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.shoot
			s.Status.LastHibernationTriggerTime = test.last
			if test.failed {
				s.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed}
			}
			slept := ptr.Deref(s.Spec.Hibernation.Enabled, false)
			g := kittest.New(t, s)
			g.After(test.after)
			recorder := events.NewFakeRecorder(10)
			base := kit.Base{Client: g, Clock: g.Clock, Recorder: recorder}
			result := g.MustReconcile(reconcile.AsReconciler(g, &ShootHibernation{Base: base, TriggerDeadline: test.deadline}), s)
			want := test.again
			if want > 0 {
				want += hibernationDelay
			}
			if result.RequeueAfter != want {
				t.Errorf("again after %s, want %s", result.RequeueAfter, want)
			}
			if !test.triggered {
				test.sleeps = slept
			}
			if got := ptr.Deref(s.Spec.Hibernation.Enabled, false); got != test.sleeps {
				t.Errorf("hibernation %v", got)
			}
			now, noted := g.Clock.Now(), s.Status.LastHibernationTriggerTime
			if (noted != nil && noted.Time.Equal(now)) != test.triggered || len(recorder.Events) != map[bool]int{true: 1}[test.triggered] {
				t.Errorf("triggered %v, %d events", noted, len(recorder.Events))
			}
			if test.triggered {
				if text := <-recorder.Events; strings.Contains(text, corev1beta1.ShootEventHibernationEnabled) != test.sleeps {
					t.Errorf("event %s", text)
				}
			}
		})
	}
}

func TestBeingDeleted(t *testing.T) {
	s := shootWithSchedules(false, daily("0 20 * * *", "", ""))
	s.Finalizers, s.DeletionTimestamp = []string{"test"}, afterStart(0)
	g := kittest.New(t, s)
	g.After(20 * time.Hour)
	r := reconcile.AsReconciler(g, &ShootHibernation{Base: g.Base()})
	if result := g.MustReconcile(r, s); result.RequeueAfter != 0 || *s.Spec.Hibernation.Enabled {
		t.Errorf("again after %s, hibernation %v", result.RequeueAfter, *s.Spec.Hibernation.Enabled)
	}
}

func TestScheduled(t *testing.T) {
	with, without := shootWithSchedules(false, daily("0 20 * * *", "", "")), shootWithSchedules(false)
	other := shootWithSchedules(true, daily("0 21 * * *", "", ""))
	awake := with.DeepCopy()
	awake.Spec.Hibernation.Enabled = ptr.To(true)
	for name, test := range map[string]struct {
		before, after *corev1beta1.Shoot
		want          bool
	}{
		"gets schedules": {without, with, true}, "gets others": {with, other, true}, "loses them": {with, without, false},
		"falls asleep": {with, awake, false}, "gets a hibernation": {&corev1beta1.Shoot{}, with, true},
	} {
		if got := scheduled().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if scheduled().Create(event.CreateEvent{Object: without}) || !scheduled().Create(event.CreateEvent{Object: with}) {
		t.Error("what comes is looked at if it has schedules")
	}
}
