package controllermanager

import (
	"reflect"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func conditionsFrom(of ...string) (all []corev1beta1.Condition) {
	for i := 0; i < len(of); i += 2 {
		all = append(all, corev1beta1.Condition{Type: corev1beta1.ConditionType(of[i]), Status: corev1beta1.ConditionStatus(of[i+1])})
	}
	return all
}

func TestCopiesConditions(t *testing.T) {
	managedSeed := func(name, shoot string) *seedmanagementv1alpha1.ManagedSeed {
		return &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name},
			Spec: seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: shoot}}}
	}
	seed := func(of ...string) *corev1beta1.Seed {
		return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}, Status: corev1beta1.SeedStatus{Conditions: conditionsFrom(of...)}}
	}
	for name, test := range map[string]struct {
		before []corev1beta1.Condition
		others []client.Object
		want   []corev1beta1.Condition
	}{
		"no seed": {conditionsFrom("APIServerAvailable", "True"), nil, conditionsFrom("APIServerAvailable", "True")},
		"seed": {conditionsFrom("APIServerAvailable", "True"), []client.Object{managedSeed("seed", "x"),
			seed("GardenletReady", "True")}, conditionsFrom("APIServerAvailable", "True", "GardenletReady", "True")},
		"seed changes": {conditionsFrom("GardenletReady", "True", "EveryNodeReady", "True"), []client.Object{managedSeed("seed", "x"),
			seed("GardenletReady", "Unknown")}, conditionsFrom("EveryNodeReady", "True", "GardenletReady", "Unknown")},
		"another's seed": {nil, []client.Object{managedSeed("seed", "y"), seed("GardenletReady", "True")}, nil},
		"seed is no more": {conditionsFrom("GardenletReady", "True", "EveryNodeReady", "True"),
			[]client.Object{managedSeed("seed", "x")}, conditionsFrom("EveryNodeReady", "True")},
		"seed of itself": {conditionsFrom("GardenletReady", "True"), []client.Object{seed("GardenletReady", "True")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "x"},
				Status: corev1beta1.ShootStatus{Conditions: test.before}}
			g := kittest.New(t, append(test.others, shoot)...)
			g.MustReconcile(reconcile.AsReconciler(g, &ShootConditions{Base: g.Base()}), shoot)
			if !reflect.DeepEqual(shoot.Status.Conditions, test.want) {
				t.Errorf("%v", shoot.Status.Conditions)
			}
			version := shoot.ResourceVersion
			if g.MustReconcile(reconcile.AsReconciler(g, &ShootConditions{Base: g.Base()}), shoot); shoot.ResourceVersion != version {
				t.Error("written again")
			}
		})
	}
	g := kittest.New(t, managedSeed("seed", "x"))
	if got := (&ShootConditions{Base: g.Base()}).shootOf(t.Context(), seed()); len(got) != 1 || got[0].String() != "garden/x" {
		t.Errorf("the shoot is %v", got)
	}
	if p := conditionsChanged(); p.Update(event.UpdateEvent{ObjectOld: seed("A", "True"), ObjectNew: seed("A", "True")}) ||
		!p.Update(event.UpdateEvent{ObjectOld: seed("A", "True"), ObjectNew: seed("A", "False")}) {
		t.Error("wrong updates")
	}
}
