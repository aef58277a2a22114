package admission

import (
	"context"
	"slices"
	"strings"
	"testing"

	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func shootOfManagedSeed() *gardencore.Shoot {
	shoot := &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "soil"}}
	shoot.Spec.Kubernetes.VerticalPodAutoscaler = &gardencore.VerticalPodAutoscaler{Enabled: true}
	shoot.Spec.Networking = &gardencore.Networking{Nodes: new("10.1.0.0/16")}
	shoot.Spec.Provider.Workers = []gardencore.Worker{{Name: "one", Zones: []string{"a", "b"}}, {Name: "two", Zones: []string{"b", "c"}}}
	return shoot
}

func newSeed(name string, zones ...string) *seedmanagement.ManagedSeed {
	config := &gardenletconfigv1alpha1.GardenletConfiguration{}
	if zones != nil {
		config.SeedConfig = &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: gardencorev1beta1.SeedTemplate{
			Spec: gardencorev1beta1.SeedSpec{Provider: gardencorev1beta1.SeedProvider{Zones: zones}}}}
	}
	seed := &seedmanagement.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
	seed.Spec.Shoot, seed.Spec.Gardenlet.Config = &seedmanagement.Shoot{Name: "soil"}, config
	return seed
}

func runValidateShootManagedSeed(t *testing.T, seeds []*seedmanagement.ManagedSeed, operation admission.Operation, name string,
	change func(*gardencore.Shoot)) error {
	t.Helper()
	objects := map[schema.GroupResource][]runtime.Object{gardencore.Resource("shoots"): {shootOfManagedSeed()}}
	for _, seed := range seeds {
		objects[seedmanagement.Resource("managedseeds")] = append(objects[seedmanagement.Resource("managedseeds")], seed)
	}
	p := shootManagedSeedPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: objects}})
	shoot := shootOfManagedSeed()
	if change != nil {
		change(shoot)
	}
	a := admission.NewAttributesRecord(shoot, shootOfManagedSeed(), gardencore.Kind("Shoot").WithVersion("v1beta1"), "garden", name,
		gardencore.Resource("shoots").WithVersion("v1beta1"), "", operation, nil, false, nil)
	return p.(admission.ValidationInterface).Validate(context.Background(), a, nil)
}

func TestUpdate(t *testing.T) {
	seeded := []*seedmanagement.ManagedSeed{newSeed("soil", "a", "c")}
	for name, test := range map[string]struct {
		seeds  []*seedmanagement.ManagedSeed
		change func(*gardencore.Shoot)
		want   []string // the fields in the 422 response
	}{
		"no seed":   {change: func(s *gardencore.Shoot) { s.Spec = gardencore.ShootSpec{} }},
		"no change": {seeds: seeded},
		"nginx": {seeds: seeded, change: func(s *gardencore.Shoot) {
			s.Spec.Addons = &gardencore.Addons{NginxIngress: &gardencore.NginxIngress{Addon: gardencore.Addon{Enabled: true}}}
		}, want: []string{"spec.addons.nginxIngress.enabled"}},
		"no autoscaler": {seeds: seeded, change: func(s *gardencore.Shoot) { s.Spec.Kubernetes.VerticalPodAutoscaler = nil },
			want: []string{"spec.kubernetes.verticalPodAutoscaler.enabled"}},
		"other nodes": {seeds: seeded, change: func(s *gardencore.Shoot) { s.Spec.Networking.Nodes = new("10.2.0.0/16") },
			want: []string{"spec.networking.nodes"}},
		"no networking": {seeds: seeded, change: func(s *gardencore.Shoot) { s.Spec.Networking = nil },
			want: []string{"spec.networking.nodes"}},
		"zone of the seed": {seeds: seeded, change: func(s *gardencore.Shoot) { s.Spec.Provider.Workers[1].Zones = nil },
			want: []string{"spec.providers.workers"}},
		"zone of another": {seeds: seeded, change: func(s *gardencore.Shoot) { s.Spec.Provider.Workers[0].Zones = []string{"a"} }},
		"other zones": {seeds: []*seedmanagement.ManagedSeed{newSeed("soil", "x")},
			change: func(s *gardencore.Shoot) { s.Spec.Provider.Workers[1].Zones = nil }},
		"no seed template": {seeds: []*seedmanagement.ManagedSeed{newSeed("soil")}, want: []string{"spec.providers.workers"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := runValidateShootManagedSeed(t, test.seeds, admission.Update, "soil", test.change)
			var got []string
			if status, ok := err.(apierrors.APIStatus); ok && apierrors.IsInvalid(err) {
				for _, cause := range status.Status().Details.Causes {
					got = append(got, cause.Field)
				}
			}
			if (err == nil) != (test.want == nil) || !slices.Equal(got, test.want) {
				t.Errorf("error %v, want one about %v", err, test.want)
			}
		})
	}
	err := runValidateShootManagedSeed(t, []*seedmanagement.ManagedSeed{newSeed("one", "a"), newSeed("two", "a")}, admission.Update,
		"soil", nil)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("with two ManagedSeeds: %v", err)
	}
}

func TestDeleteShootManagedSeed(t *testing.T) {
	seeded := []*seedmanagement.ManagedSeed{newSeed("soil", "a")}
	other := newSeed("other", "a")
	other.Spec.Shoot.Name = "gone"
	for name, test := range map[string]struct {
		seeds   []*seedmanagement.ManagedSeed
		shoot   string
		refused bool
	}{
		"no seed":                  {shoot: "soil"},
		"a seed":                   {seeds: seeded, shoot: "soil", refused: true},
		"beside a seed":            {seeds: seeded, shoot: "other"},
		"collection":               {},
		"collection with a seed":   {seeds: seeded, refused: true},
		"collection without seeds": {seeds: []*seedmanagement.ManagedSeed{other}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := runValidateShootManagedSeed(t, test.seeds, admission.Delete, test.shoot, nil); apierrors.IsForbidden(err) != test.refused ||
				(err != nil) != test.refused {
				t.Errorf("error %v, want refused=%v", err, test.refused)
			}
		})
	}
}
