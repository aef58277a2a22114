package controllermanager

import (
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func readySeed(name string, changes ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	s := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"test"}}, Status: corev1beta1.SeedStatus{
		Gardener: &corev1beta1.Gardener{ID: name, Version: "v1"},
		Conditions: []corev1beta1.Condition{
			{Type: corev1beta1.GardenletReady, Status: corev1beta1.ConditionTrue},
			{Type: corev1beta1.SeedSystemComponentsHealthy, Status: corev1beta1.ConditionTrue},
		},
	}}
	for _, change := range changes {
		change(s)
	}
	return s
}

func movingShoot(spec, status string, constraints ...corev1beta1.Condition) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "x"}, Spec: corev1beta1.ShootSpec{SeedName: &spec}}
	s.Status.Constraints = append(constraints, corev1beta1.Condition{Type: "Other", Status: "True"})
	if status != "" {
		s.Status.SeedName = &status
	}
	return s
}

var constraint = corev1beta1.Condition{Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionTrue}

func TestConstraint(t *testing.T) {
	for name, test := range map[string]struct {
		shoot       *corev1beta1.Shoot
		destination *corev1beta1.Seed
		want        string // status, reason and a part of the message; "" if there is to be no constraint.
	}{
		"not scheduled yet": {movingShoot("to", ""), readySeed("to"), ""},
		"stays":             {movingShoot("from", "from"), readySeed("to"), ""},
		"stays again":       {movingShoot("from", "from", constraint), readySeed("to"), ""},
		"ready":             {movingShoot("to", "from"), readySeed("to"), "True DestinationSeedReady ready"},
		"no longer ready": {movingShoot("to", "from", constraint), readySeed("to",
			func(s *corev1beta1.Seed) { s.Status.Conditions[0].Status = "Unknown" }), "False DestinationSeedUnready GardenletReady is Unknown"},
		"condition is missing": {movingShoot("to", "from"), readySeed("to",
			func(s *corev1beta1.Seed) { s.Status.Conditions = s.Status.Conditions[:1] }),
			"False DestinationSeedUnready SeedSystemComponentsHealthy is missing"},
		"another version": {movingShoot("to", "from"), readySeed("to", func(s *corev1beta1.Seed) { s.Status.Gardener.Version = "v2" }),
			"False DestinationSeedUnready version v2"},
		"no version": {movingShoot("to", "from"), readySeed("to", func(s *corev1beta1.Seed) { s.Status.Gardener = nil }),
			"False DestinationSeedUnready does not tell"},
		"not seen yet": {movingShoot("to", "from"), readySeed("to", func(s *corev1beta1.Seed) { s.Generation = 2 }),
			"False DestinationSeedUnready generation 0 of 2"},
		"in deletion": {movingShoot("to", "from"), readySeed("to",
			func(s *corev1beta1.Seed) { s.DeletionTimestamp = &metav1.Time{Time: kittest.Start} }), "False DestinationSeedInDeletion deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			g := kittest.New(t, test.shoot, readySeed("from"), test.destination)
			r := &ShootMigration{Base: g.Base()}
			result := g.MustReconcile(reconcile.AsReconciler(g, r), test.shoot)
			got := conditions.Get(test.shoot.Status.Constraints, corev1beta1.ShootReadyForMigration)
			if conditions.Get(test.shoot.Status.Constraints, "Other") == nil || (got == nil) != (test.want == "") ||
				(result.RequeueAfter == 5*time.Second) != (test.want != "") {
				t.Fatalf("%+v, again after %s", test.shoot.Status.Constraints, result.RequeueAfter)
			}
			if got == nil {
				return
			}
			want := strings.SplitN(test.want, " ", 3)
			if string(got.Status) != want[0] || got.Reason != want[1] || !strings.Contains(got.Message, want[2]) ||
				!got.LastTransitionTime.Time.Equal(kittest.Start) {
				t.Errorf("%+v", got)
			}
			version := test.shoot.ResourceVersion
			if g.MustReconcile(reconcile.AsReconciler(g, r), test.shoot); test.shoot.ResourceVersion != version {
				t.Error("written again")
			}
		})
	}
	g := kittest.New(t, movingShoot("to", "from"), readySeed("from"))
	r := reconcile.AsReconciler(g, &ShootMigration{Base: g.Base()})
	if _, err := g.Reconcile(r, movingShoot("", "")); err == nil || !strings.Contains(err.Error(), "Seed to") {
		t.Errorf("no such seed: %v", err)
	}
}

func TestMoves(t *testing.T) {
	migrating := movingShoot("to", "from", constraint)
	migrating.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate}
	for name, test := range map[string]struct {
		before, after    *corev1beta1.Shoot
		updated, created bool
	}{
		"nothing":        {movingShoot("from", "from"), movingShoot("from", "from"), false, false},
		"another seed":   {movingShoot("from", "from"), movingShoot("to", "from"), true, true},
		"waits":          {movingShoot("to", "from"), movingShoot("to", "from"), false, true},
		"has constraint": {movingShoot("from", "from"), movingShoot("from", "from", constraint), true, true},
		"migrating":      {migrating, migrating, false, true},
		"scheduled":      {&corev1beta1.Shoot{}, &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{SeedName: ptr.To("to")}}, true, false},
	} {
		if got := shootMoves().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.updated {
			t.Errorf("%s: updated %v", name, got)
		}
		if got := shootMoves().Create(event.CreateEvent{Object: test.after}); got != test.created {
			t.Errorf("%s: created %v", name, got)
		}
	}
}
