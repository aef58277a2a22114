package controllermanager

import (
	"slices"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func aliveSeed() *corev1beta1.Seed {
	s := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	s.Status.Conditions = []corev1beta1.Condition{
		{Type: corev1beta1.GardenletReady, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.NewTime(kittest.Start)}}
	return s
}

func shootOnSeed(name, seed string, workers ...corev1beta1.Worker) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: name}}
	s.Spec.Provider.Workers, s.Status.SeedName = workers, &seed
	s.Status.Conditions = []corev1beta1.Condition{
		{Type: corev1beta1.ShootAPIServerAvailable, Status: corev1beta1.ConditionTrue},
		{Type: "Own", Status: corev1beta1.ConditionTrue},
	}
	return s
}

func lease(renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-seed-lease", Name: "s"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}},
	}
}

func gardenletReady(seed *corev1beta1.Seed) corev1beta1.ConditionStatus {
	if c := conditions.Get(seed.Status.Conditions, corev1beta1.GardenletReady); c != nil {
		return c.Status
	}
	return ""
}

func TestLease(t *testing.T) {
	unknown := corev1beta1.ConditionUnknown
	for name, test := range map[string]struct {
		seed  *corev1beta1.Seed
		lease *coordinationv1.Lease
		want  corev1beta1.ConditionStatus
	}{
		"renewed":        {aliveSeed(), lease(kittest.Start), corev1beta1.ConditionTrue},
		"almost too old": {aliveSeed(), lease(kittest.Start.Add(time.Millisecond - DefaultSeedMonitorPeriod)), corev1beta1.ConditionTrue},
		"too old":        {aliveSeed(), lease(kittest.Start.Add(-DefaultSeedMonitorPeriod)), unknown},
		"missing":        {aliveSeed(), nil, unknown},
		"never renewed":  {aliveSeed(), &coordinationv1.Lease{ObjectMeta: lease(kittest.Start).ObjectMeta}, unknown},
		"a new seed":     {&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, nil, ""},
		"has never been ready": {func() *corev1beta1.Seed {
			s := aliveSeed()
			s.Status.Conditions[0].Type = "Other"
			return s
		}(), nil, unknown},
	} {
		g := kittest.New(t, test.seed)
		if test.lease != nil {
			g.Must(g.Create(g.Context(), test.lease))
		}
		result := g.MustReconcile(reconcile.AsReconciler(g, &GardenletLifecycle{Base: g.Base()}), test.seed)
		if gardenletReady(test.seed) != test.want || result.RequeueAfter != 10*time.Second {
			t.Errorf("%s: %+v, again after %s", name, test.seed.Status.Conditions, result.RequeueAfter)
		}
		if test.want == unknown && conditions.Get(test.seed.Status.Conditions, corev1beta1.GardenletReady).Reason != "StatusUnknown" {
			t.Errorf("%s: %+v", name, test.seed.Status.Conditions)
		}
	}
}

// TestShoots checks the Shoots of a gardenlet that stops, is absent, and comes back.
func TestShoots(t *testing.T) {
	s, l := aliveSeed(), lease(kittest.Start)
	of, workerless, elsewhere := shootOnSeed("of", "s", corev1beta1.Worker{}), shootOnSeed("workerless", "s"), shootOnSeed("elsewhere",
		"other")
	g := kittest.New(t, s, l, of, workerless, elsewhere)
	clock := testclock.NewFakeClock(kittest.Start)
	r := &GardenletLifecycle{Base: kit.Base{Client: g, Reader: g, Clock: clock}}
	at := func(after time.Duration, want corev1beta1.ConditionStatus, shoots int) {
		t.Helper()
		clock.SetTime(kittest.Start.Add(after))
		g.MustReconcile(reconcile.AsReconciler(g, r), s)
		found := 0
		for _, shoot := range []*corev1beta1.Shoot{of, workerless, elsewhere} {
			g.Exists(shoot)
			if c := conditions.Get(shoot.Status.Conditions, corev1beta1.ShootAPIServerAvailable); c.Status == corev1beta1.ConditionUnknown {
				found++
			}
		}
		if gardenletReady(s) != want || found != shoots {
			t.Errorf("after %s: %s and %d shoots, want %s and %d", after, gardenletReady(s), found, want, shoots)
		}
	}
	at(39*time.Second, corev1beta1.ConditionTrue, 0)
	at(40*time.Second, corev1beta1.ConditionUnknown, 0)
	at(239*time.Second, corev1beta1.ConditionUnknown, 0)
	at(240*time.Second, corev1beta1.ConditionUnknown, 2)

	types := func(conditions []corev1beta1.Condition) (unknown []string) {
		for _, c := range conditions {
			if c.Status == corev1beta1.ConditionUnknown && c.Reason == "StatusUnknown" {
				unknown = append(unknown, string(c.Type))
			}
		}
		slices.Sort(unknown)
		return unknown
	}
	all := []string{"APIServerAvailable", "ControlPlaneHealthy", "EveryNodeReady", "ObservabilityComponentsHealthy", "SystemComponentsHealthy"}
	if got := types(of.Status.Conditions); !slices.Equal(got, all) || !conditions.IsTrue(of.Status.Conditions, "Own") {
		t.Errorf("%v", of.Status.Conditions)
	}
	if got := types(workerless.Status.Conditions); len(got) != 4 || slices.Contains(got, "EveryNodeReady") {
		t.Errorf("%v", got)
	}
	if got := types(of.Status.Constraints); !slices.Equal(got, []string{"HibernationPossible", "MaintenancePreconditionsSatisfied"}) {
		t.Errorf("%v", got)
	}

	version := of.ResourceVersion
	at(300*time.Second, corev1beta1.ConditionUnknown, 2)
	if of.ResourceVersion != version {
		t.Error("written again for nothing")
	}
	// The gardenlet is back. It updates the conditions itself.
	g.Must(g.Get(g.Context(), client.ObjectKeyFromObject(l), l))
	l.Spec.RenewTime = &metav1.MicroTime{Time: kittest.Start.Add(300 * time.Second)}
	g.Must(g.Update(g.Context(), l))
	s.Status.Conditions[0].Status = corev1beta1.ConditionTrue
	g.Must(g.Status().Update(g.Context(), s))
	at(301*time.Second, corev1beta1.ConditionTrue, 2)
}

func TestExpiredCertificate(t *testing.T) {
	expired := func(expiry time.Time) *corev1beta1.Seed {
		s := aliveSeed()
		s.Status.ClientCertificateExpirationTimestamp = ptr.To(metav1.NewTime(expiry))
		return s
	}
	for name, test := range map[string]struct {
		seed  *corev1beta1.Seed
		lease *coordinationv1.Lease
		want  bool
	}{
		"expired":              {expired(kittest.Start.Add(-time.Second)), nil, true},
		"expired, but renewed": {expired(kittest.Start.Add(-time.Second)), lease(kittest.Start), false},
		"valid":                {expired(kittest.Start.Add(time.Second)), nil, false},
		"not known":            {aliveSeed(), nil, false},
	} {
		managed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s"}}
		g := kittest.New(t, test.seed, managed)
		if test.lease != nil {
			g.Must(g.Create(g.Context(), test.lease))
		}
		g.MustReconcile(reconcile.AsReconciler(g, &GardenletLifecycle{Base: g.Base()}), test.seed)
		g.Exists(managed)
		if (managed.Annotations[constants.GardenerOperation] == "reconcile") != test.want {
			t.Errorf("%s: %v", name, managed.Annotations)
		}
	}
}
