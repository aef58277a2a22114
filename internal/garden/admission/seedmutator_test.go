package admission

import (
	"context"
	"maps"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func managedSeed(name string, shoot *seedmanagement.Shoot) *seedmanagement.ManagedSeed {
	return &seedmanagement.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "garden"},
		Spec: seedmanagement.ManagedSeedSpec{Shoot: shoot}}
}

func TestAdmitSeedMutator(t *testing.T) {
	p := seedMutatorPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("shoots"): {
			&gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden"}, Spec: gardencore.ShootSpec{SeedName: new("parent")}}},
		seedmanagement.Resource("managedseeds"): {
			managedSeed("managed", &seedmanagement.Shoot{Name: "s"}),
			managedSeed("shootless", nil),
			managedSeed("orphan", &seedmanagement.Shoot{Name: "none"}),
		},
	}}})
	for seed, want := range map[string]map[string]string{
		"plain":     {"x": "y", "name.seed.gardener.cloud/plain": "true"},
		"shootless": {"x": "y", "name.seed.gardener.cloud/shootless": "true"},
		"managed":   {"x": "y", "name.seed.gardener.cloud/managed": "true", "name.seed.gardener.cloud/parent": "true"},
		"orphan":    nil,
	} {
		t.Run(seed, func(t *testing.T) {
			obj := &gardencore.Seed{
				ObjectMeta: metav1.ObjectMeta{Name: seed, Labels: map[string]string{"x": "y", "name.seed.gardener.cloud/old": "true"}}}
			err := p.(admission.MutationInterface).Admit(context.Background(),
				admission.NewAttributesRecord(obj, nil, gardencore.Kind("Seed").WithVersion("v1beta1"), "", seed,
					gardencore.Resource("seeds").WithVersion("v1beta1"), "", admission.Create, nil, false, nil), nil)
			if want == nil {
				if !apierrors.IsForbidden(err) {
					t.Errorf("got %v, want Forbidden", err)
				}
				return
			}
			if err != nil || !maps.Equal(obj.Labels, want) {
				t.Errorf("got %v, %v, want %v", obj.Labels, err, want)
			}
		})
	}
}
