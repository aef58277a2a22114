package admission

import (
	"context"
	"strings"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func TestAdmitShootExposureClass(t *testing.T) {
	selector := func(labels map[string]string, expressions []metav1.LabelSelectorRequirement, types ...string) *gardencore.SeedSelector {
		return &gardencore.SeedSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: labels, MatchExpressions: expressions}, ProviderTypes: types}
	}
	hasZone := []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}}
	hasRack := []metav1.LabelSelectorRequirement{{Key: "rack", Operator: metav1.LabelSelectorOpExists}}
	class := func(name string, scheduling *gardencore.ExposureClassScheduling) *gardencore.ExposureClass {
		return &gardencore.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Scheduling: scheduling}
	}
	public := class("public", &gardencore.ExposureClassScheduling{
		SeedSelector: selector(map[string]string{"net": "public"}, hasZone, "b", "c"),
		Tolerations:  []gardencore.Toleration{{Key: "public", Value: new("yes")}},
	})
	before := public.DeepCopy()
	p := shootExposureClassPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("exposureclasses"): {public, class("plain", nil),
			class("tolerated", &gardencore.ExposureClassScheduling{Tolerations: []gardencore.Toleration{{Key: "t"}}})},
	}}})
	own := gardencore.ShootSpec{SeedSelector: selector(map[string]string{"own": "1"}, hasRack, "d", "b"),
		Tolerations: []gardencore.Toleration{{Key: "own"}}}
	for name, test := range map[string]struct {
		class      string
		spec, want gardencore.ShootSpec
		refused    string
	}{
		"no class":    {spec: own, want: own},
		"says little": {class: "plain", spec: own, want: own},
		"for an empty Shoot": {class: "public", want: gardencore.ShootSpec{
			SeedSelector: selector(map[string]string{"net": "public"}, hasZone, "b", "c"),
			Tolerations:  []gardencore.Toleration{{Key: "public", Value: new("yes")}}}},
		"united": {class: "public", spec: own, want: gardencore.ShootSpec{
			SeedSelector: selector(map[string]string{"own": "1", "net": "public"}, append(hasRack[:1:1], hasZone...), "b", "c", "d"),
			Tolerations:  []gardencore.Toleration{{Key: "own"}, {Key: "public", Value: new("yes")}}}},
		"only tolerations": {class: "tolerated", want: gardencore.ShootSpec{Tolerations: []gardencore.Toleration{{Key: "t"}}}},
		"other label": {class: "public", spec: gardencore.ShootSpec{SeedSelector: selector(map[string]string{"net": "private"}, nil)},
			refused: "spec.seedSelector.matchLabels"},
		"same toleration": {class: "tolerated", spec: gardencore.ShootSpec{Tolerations: []gardencore.Toleration{{Key: "t", Value: new("x")}}},
			refused: "spec.tolerations"},
		"unknown": {class: "gone", refused: "spec.exposureClassName"},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &gardencore.Shoot{Spec: *test.spec.DeepCopy()}
			if test.class != "" {
				shoot.Spec.ExposureClassName = &test.class
				test.want.ExposureClassName = &test.class
			}
			a := admission.NewAttributesRecord(shoot, nil, gardencore.Kind("Shoot").WithVersion("v1beta1"), "", "",
				gardencore.Resource("shoots").WithVersion("v1beta1"), "", admission.Create, nil, false, nil)
			err := p.(admission.MutationInterface).Admit(context.Background(), a, nil)
			if test.refused != "" {
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("error %v, want one about %s", err, test.refused)
				}
				return
			}
			if err != nil || !equality.Semantic.DeepEqual(shoot.Spec, test.want) {
				t.Errorf("error %v, spec %+v, want %+v", err, shoot.Spec, test.want)
			}
			if !equality.Semantic.DeepEqual(public, before) {
				t.Error("the ExposureClass itself must not change")
			}
		})
	}
}
