package admission

import (
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

// TestDeleteManagedSeedShoot deletes the ManagedSeeds "a", "b" and "c": a Shoot is scheduled to "b", and another one still runs on "c".
func TestDeleteManagedSeedShoot(t *testing.T) {
	managedSeed := func(name string) runtime.Object {
		return &seedmanagement.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "garden"}}
	}
	shoots := []runtime.Object{
		&gardencore.Shoot{Spec: gardencore.ShootSpec{SeedName: ptr.To("b")}},
		&gardencore.Shoot{Spec: gardencore.ShootSpec{SeedName: ptr.To("other")}, Status: gardencore.ShootStatus{SeedName: ptr.To("c")}},
	}
	for _, test := range []struct {
		name, subresource string
		seeds             []runtime.Object
		refused           bool
	}{
		{name: "a"},
		{name: "b", refused: true},
		{name: "c", refused: true},
		{name: "c", subresource: "status"},
		{seeds: []runtime.Object{managedSeed("a")}},
		{seeds: []runtime.Object{managedSeed("a"), managedSeed("b")}, refused: true},
	} {
		p := managedSeedShootPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
			gardencore.Resource("shoots"): shoots, seedmanagement.Resource("managedseeds"): test.seeds}}})
		err := p.(admission.ValidationInterface).Validate(
			t.Context(), admission.NewAttributesRecord(nil, nil, seedmanagement.SchemeGroupVersion.WithKind("ManagedSeed"),
				"garden", test.name, seedmanagement.SchemeGroupVersion.WithResource("managedseeds"), test.subresource,
				admission.Delete, nil, false, nil), nil)
		if apierrors.IsForbidden(err) != test.refused || !test.refused && err != nil {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
