package shootcare

import (
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

// schedules returns schedules from pairs of times at which a Shoot is hibernated and woken up each day.
func schedules(times ...string) *corev1beta1.Hibernation {
	h := &corev1beta1.Hibernation{}
	for i := 0; i < len(times); i += 2 {
		s := corev1beta1.HibernationSchedule{}
		if times[i] != "" {
			s.Start = ptr.To(times[i] + " * * *")
		}
		if times[i+1] != "" {
			s.End = ptr.To(times[i+1] + " * * *")
		}
		h.Schedules = append(h.Schedules, s)
	}
	return h
}

// TestSleepsInNextWindow is at noon, UTC, where the clocks of the Shoot's window go by another time zone.
func TestSleepsInNextWindow(t *testing.T) {
	now := time.Date(2026, 1, 7, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		begin, end  string
		hibernation *corev1beta1.Hibernation
		hibernated  bool
		want        bool
	}{
		"without a window":            {hibernation: schedules("0 13", ""), want: false},
		"without schedules":           {begin: "220000+0000", end: "230000+0000", want: false},
		"hibernated by hand":          {begin: "220000+0000", end: "230000+0000", hibernated: true, want: true},
		"asleep at night":             {begin: "220000+0000", end: "230000+0000", hibernation: schedules("0 20", "0 8"), want: true},
		"never woken up":              {begin: "220000+0000", end: "230000+0000", hibernation: schedules("0 20", ""), want: true},
		"never hibernated":            {begin: "220000+0000", end: "230000+0000", hibernation: schedules("", "0 8"), want: false},
		"on a day that there is not":  {begin: "220000+0000", end: "230000+0000", hibernation: impossible(), want: false},
		"hibernated in the window":    {begin: "220000+0000", end: "230000+0000", hibernation: schedules("30 22", "0 8"), want: true},
		"hibernated after the window": {begin: "220000+0000", end: "230000+0000", hibernation: schedules("30 23", "0 8"), want: false},
		"woken up before the window":  {begin: "220000+0000", end: "230000+0000", hibernation: schedules("0 20", "0 21"), want: false},
		"woken up in the window":      {begin: "220000+0000", end: "230000+0000", hibernation: schedules("0 20", "30 22"), want: true},
		"a window over midnight":      {begin: "230000+0000", end: "010000+0000", hibernation: schedules("30 0", "0 8"), want: true},
		"the window of tomorrow":      {begin: "100000+0000", end: "110000+0000", hibernation: schedules("0 20", "0 8"), want: false},
		"a window that is open":       {begin: "113000+0000", end: "123000+0000", hibernation: schedules("15 12", "0 8"), want: false},
		"in another time zone":        {begin: "220000+0900", end: "230000+0900", hibernation: schedules("30 13", "0 16"), want: true},
		"wakes up in time": {begin: "220000+0000", end: "230000+0000", hibernation: schedules("0 11", "0 21"), hibernated: true,
			want: false},
		"wakes up too late": {begin: "220000+0000", end: "230000+0000", hibernation: schedules("0 11", "30 22"),
			hibernated: true, want: true},
		"wakes up and is hibernated again": {begin: "220000+0000", end: "230000+0000", hibernation: schedules("30 21", "0 21"),
			hibernated: true, want: true},
		"the first of several schedules": {begin: "220000+0000", end: "230000+0000", hibernation: schedules("0 13", "0 14", "0 20", "0 8"),
			want: false},
		"schedules that are not understood":  {begin: "220000+0000", end: "230000+0000", hibernation: schedules("often", ""), want: false},
		"a window that cannot be understood": {begin: "late", end: "later", hibernation: schedules("0 20", "0 8"), want: false},
	} {
		shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Hibernation: test.hibernation}}
		if test.begin != "" {
			shoot.Spec.Maintenance = &corev1beta1.Maintenance{TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: test.begin, End: test.end}}
		}
		shoot.Status.IsHibernated = test.hibernated
		if got := sleepsInNextWindow(shoot, now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		if got := sleepsInNextWindow(shoot, now.In(time.FixedZone("", 14*3600))); got != test.want {
			t.Errorf("%s: %t with another zone of the clock", name, got)
		}
	}
}

func impossible() *corev1beta1.Hibernation {
	return &corev1beta1.Hibernation{Schedules: []corev1beta1.HibernationSchedule{{Start: ptr.To("0 20 30 2 *")}}}
}

// A rotation that is due and cannot begin is a constraint, whether the Shoot is awake or hibernated.
func TestAutomaticRotation(t *testing.T) {
	const kind = corev1beta1.ShootAutomaticCredentialsRotationPossible
	w := newWorld(t)
	w.change(func(s *corev1beta1.Shoot) {
		s.CreationTimestamp = metav1.NewTime(w.clock.Now())
		s.Spec.Hibernation = schedules("0 20", "0 8")
		s.Spec.Maintenance = &corev1beta1.Maintenance{
			TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"},
			AutoRotation: &corev1beta1.MaintenanceAutoRotation{Credentials: &corev1beta1.MaintenanceCredentialsAutoRotation{
				ETCDEncryptionKey: &corev1beta1.MaintenanceRotationConfig{RotationPeriod: &metav1.Duration{Duration: 30 * 24 * time.Hour}},
			}},
		}
	})
	none := func(when string) {
		t.Helper()
		if c := conditions.Get(w.shoot().Status.Constraints, kind); c != nil {
			t.Errorf("%s: %s, %s", when, c.Status, c.Reason)
		}
	}
	w.reconcile()
	none("before the period is over")
	noon := w.clock.Now().UTC().Add(31 * 24 * time.Hour).Truncate(24 * time.Hour).Add(12 * time.Hour)
	w.clock.SetTime(noon)
	w.reconcile()
	w.says(kind, no, "MaintenanceWindowDuringHibernation")
	w.change(func(s *corev1beta1.Shoot) { s.Spec.Hibernation.Schedules[0].Start = ptr.To("30 23 * * *") })
	w.reconcile()
	none("awake in the window")
	w.change(func(s *corev1beta1.Shoot) {
		s.Spec.Hibernation.Enabled, s.Status.IsHibernated = ptr.To(true), true
		s.Spec.Hibernation.Schedules[0].End = nil
	})
	if wait := w.reconcile(); wait != failedSyncPeriod {
		t.Errorf("hibernated, it is checked again after %s", wait)
	}
	w.says(kind, no, "MaintenanceWindowDuringHibernation")
	w.change(func(s *corev1beta1.Shoot) {
		s.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{LastCompletionTime: ptr.To(metav1.NewTime(w.clock.Now()))}}}
	})
	if wait := w.reconcile(); wait != syncPeriod {
		t.Errorf("hibernated, it is checked again after %s", wait)
	}
	none("after the rotation")
}

// Failed machines that are preserved are a constraint of a Shoot with workers.
func TestPreservedMachines(t *testing.T) {
	const kind = corev1beta1.ShootPreservedFailedMachinesAbsent
	w := newWorld(t)
	for name, count := range map[string]int64{"p-z1": 1, "p-z2": 2, "p-z3": 0} {
		d := &unstructured.Unstructured{}
		d.SetAPIVersion("machine.sapcloud.io/v1alpha1")
		d.SetKind("MachineDeployment")
		d.SetNamespace(namespace)
		d.SetName(name)
		if count > 0 {
			d.Object["status"] = map[string]any{"preservedFailedReplicas": count}
		}
		if err := w.seed.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile()
	w.says(kind, no, "FailedMachinesPreserved")
	if c := conditions.Find(w.shoot().Status.Constraints, kind); c.Message != "Failed machines that are preserved, and so not replaced: 3" {
		t.Errorf("the message is %q", c.Message)
	}
	w.change(func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = nil })
	w.reconcile()
	if c := conditions.Get(w.shoot().Status.Constraints, kind); c != nil {
		t.Errorf("a Shoot without workers: %s, %s", c.Status, c.Reason)
	}
}
