package seedmanagement

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/utils/ptr"
)

const operationKey = "gardener.cloud/operation"

func annotated(operation string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "o", Annotations: map[string]string{operationKey: operation}}
}

// TestOperations checks which operations increase the generation, and which annotations stay for the controllers.
func TestOperations(t *testing.T) {
	gardenlet := func(operation string) (bool, metav1.ObjectMeta) {
		g := &gardenseedmanagement.Gardenlet{ObjectMeta: annotated(operation)}
		return gardenlets().SpecChanged(g, g.DeepCopy()), g.ObjectMeta
	}
	seed := func(operation string) (bool, metav1.ObjectMeta) {
		m := &gardenseedmanagement.ManagedSeed{ObjectMeta: annotated(operation)}
		return managedSeeds().SpecChanged(m, m.DeepCopy()), m.ObjectMeta
	}
	set := func(operation string) (bool, metav1.ObjectMeta) {
		m := &gardenseedmanagement.ManagedSeedSet{ObjectMeta: annotated(operation)}
		return managedSeedSets().SpecChanged(m, m.DeepCopy()), m.ObjectMeta
	}
	for _, test := range []struct {
		kind        string
		run         func(string) (bool, metav1.ObjectMeta)
		operation   string
		moves, left bool
	}{
		{"Gardenlet", gardenlet, "reconcile", true, false},
		{"Gardenlet", gardenlet, "renew-kubeconfig", true, true},
		{"Gardenlet", gardenlet, "force-redeploy", true, true},
		{"Gardenlet", gardenlet, "other", false, true},
		{"ManagedSeed", seed, "reconcile", true, false},
		{"ManagedSeed", seed, "renew-kubeconfig", true, true},
		{"ManagedSeed", seed, "force-redeploy", false, true},
		{"ManagedSeedSet", set, "reconcile", true, false},
		{"ManagedSeedSet", set, "renew-kubeconfig", false, true},
	} {
		moves, meta := test.run(test.operation)
		if _, left := meta.Annotations[operationKey]; moves != test.moves || left != test.left {
			t.Errorf("%s, %s: the generation moves: %t, the annotation stays: %t", test.kind, test.operation, moves, left)
		}
	}
}

func TestManagedSeedStatus(t *testing.T) {
	for status, want := range map[gardencore.ConditionStatus]string{"": "Unknown", "Unknown": "Unknown",
		"True": "Registered", "False": "NotRegistered", "Progressing": "NotRegistered"} {
		m := &gardenseedmanagement.ManagedSeed{Status: gardenseedmanagement.ManagedSeedStatus{
			Conditions: []gardencore.Condition{{Type: gardenseedmanagement.ManagedSeedSeedRegistered, Status: status}}}}
		if got := managedSeeds().Columns[0].Value(m); got != want {
			t.Errorf("%s for %q", got, status)
		}
	}
}

func TestManagedSeedSetWarnings(t *testing.T) {
	set := &gardenseedmanagement.ManagedSeedSet{}
	set.Spec.ShootTemplate.Spec.DNS = &gardencore.DNS{Providers: []gardencore.DNSProvider{{SecretName: ptr.To("s")}}}
	if got := managedSeedSets().Warnings(set, nil); len(got) != 1 {
		t.Errorf("warnings %q", got)
	}
}

func TestScale(t *testing.T) {
	set := &gardenseedmanagement.ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden", UID: "u", ResourceVersion: "7"},
		Spec: gardenseedmanagement.ManagedSeedSetSpec{
			Replicas: ptr.To[int32](2), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		Status: gardenseedmanagement.ManagedSeedSetStatus{Replicas: 1},
	}
	scale, err := scaleOf(set)
	if err != nil || scale.Name != "s" || scale.ResourceVersion != "7" || scale.Spec.Replicas != 2 ||
		scale.Status.Replicas != 1 || scale.Status.Selector != "a=b" {
		t.Errorf("scale %+v, %v", scale, err)
	}
	update := func(change func(*autoscaling.Scale)) (*gardenseedmanagement.ManagedSeedSet, error) {
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			scale := old.(*autoscaling.Scale).DeepCopy()
			change(scale)
			return scale, nil
		})
		obj, err := (&scaleUpdate{info}).UpdatedObject(t.Context(), set)
		if err != nil {
			return nil, err
		}
		return obj.(*gardenseedmanagement.ManagedSeedSet), nil
	}
	scaled, err := update(func(s *autoscaling.Scale) { s.Spec.Replicas, s.ResourceVersion = 5, "6" })
	if err != nil || *scaled.Spec.Replicas != 5 || scaled.ResourceVersion != "6" || *set.Spec.Replicas != 2 {
		t.Errorf("scaled %+v, %v", scaled, err)
	}
	if _, err := update(func(s *autoscaling.Scale) { s.UID = types.UID("other") }); !apierrors.IsConflict(err) {
		t.Errorf("of another UID: %v", err)
	}
	set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}
	if _, err := scaleOf(set); !apierrors.IsBadRequest(err) {
		t.Errorf("of an unreadable selector: %v", err)
	}
}
