package scheduler

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func on(seed string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = &seed }
}

func at(seed string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Status.SeedName = &seed }
}

func TestUpdatesThatCount(t *testing.T) {
	heartbeat := func(s *gardencorev1beta1.Seed) {
		s.Status.Conditions[0].LastUpdateTime = metav1.Time{Time: time.Unix(9, 0)}
	}
	reported := func(s *gardencorev1beta1.Shoot) {
		s.Status.LastOperation = &gardencorev1beta1.LastOperation{Description: "x"}
	}
	profile := func(s *gardencorev1beta1.SeedSelector) *gardencorev1beta1.CloudProfile {
		return &gardencorev1beta1.CloudProfile{Spec: gardencorev1beta1.CloudProfileSpec{SeedSelector: s}}
	}
	seedChanges := changes(seedAspects)
	for _, test := range []struct {
		name          string
		predicate     predicate.Predicate
		before, after client.Object
		want          bool
	}{
		{"Shoot's spec", shootChanges(), newShoot(), newShoot(shootRegion("us")), true},
		{"Shoot's status", shootChanges(), newShoot(), newShoot(reported), false},
		{"Shoot was bound", shootChanges(), newShoot(), newShoot(on("a")), true},
		{"bound Shoot's spec", shootChanges(), newShoot(on("a")), newShoot(on("a"), shootRegion("us")), false},
		{"Shoot takes room", roomGained(), newShoot(), newShoot(on("a")), false},
		{"Shoot starts to move", roomGained(), newShoot(on("a"), at("a")), newShoot(on("b"), at("a")), false},
		{"Shoot has moved", roomGained(), newShoot(on("b"), at("a")), newShoot(on("b"), at("b")), true},
		{"Seed lives", seedChanges, newSeed("a"), newSeed("a", heartbeat), false},
		{"Seed becomes ready", seedChanges, newSeed("a", condition(gardencorev1beta1.GardenletReady, "Unknown")), newSeed("a"), true},
		{"Seed gets room", seedChanges, newSeed("a", room("1")), newSeed("a", room("2")), true},
		{"Seed gets a label", seedChanges, newSeed("a"), newSeed("a", labelled("x", "y")), true},
		{"Seed's taint goes", seedChanges, newSeed("a", taint("x", nil)), newSeed("a"), true},
		{"CloudProfile's selector", changes(cloudProfileAspects), profile(selector("x", "y")), profile(nil), true},
		{"CloudProfile's regions", changes(cloudProfileAspects), profile(nil),
			&gardencorev1beta1.CloudProfile{Spec: gardencorev1beta1.CloudProfileSpec{Regions: []gardencorev1beta1.Region{{Name: "r"}}}}, false},
		{"NamespacedCloudProfile's parent", changes(namespacedCloudProfileAspects), &gardencorev1beta1.NamespacedCloudProfile{},
			&gardencorev1beta1.NamespacedCloudProfile{Status: gardencorev1beta1.NamespacedCloudProfileStatus{
				CloudProfileSpec: gardencorev1beta1.CloudProfileSpec{SeedSelector: selector("x", "y")}}}, true},
		{"Project's namespace", changes(projectAspects), &gardencorev1beta1.Project{},
			&gardencorev1beta1.Project{Spec: gardencorev1beta1.ProjectSpec{Namespace: ptr.To("n")}}, true},
		{"distances", changes(configMapAspects), &corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{"a": "b: 1"}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.predicate.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestShootsThatLeaveMakeRoom(t *testing.T) {
	if !roomGained().Delete(event.DeleteEvent{Object: newShoot(on("a"))}) {
		t.Error("a Shoot that is gone from its seed makes no room")
	}
	if roomGained().Delete(event.DeleteEvent{Object: newShoot()}) || roomGained().Create(event.CreateEvent{Object: newShoot(on("a"))}) {
		t.Error("Shoots make room that took none, or that come")
	}
}

func TestWaiting(t *testing.T) {
	g := newGardenTest(t, newShoot(), newShoot(named("bound"), on("a")), newShoot(named("second")))
	requests := g.waiting(t.Context(), newSeed("a"))
	if len(requests) != 2 || requests[0] != requestFor("second") && requests[1] != requestFor("second") {
		t.Errorf("got %v, want the two Shoots without a seed", requests)
	}
}
