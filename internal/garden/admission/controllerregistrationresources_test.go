package admission

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func registration(name string, resources ...gardencore.ControllerResource) *gardencore.ControllerRegistration {
	return &gardencore.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencore.ControllerRegistrationSpec{Resources: resources}}
}

func TestValidateControllerRegistrationResources(t *testing.T) {
	worker := func(typ string, primary *bool) gardencore.ControllerResource {
		return gardencore.ControllerResource{Kind: "Worker", Type: typ, Primary: primary}
	}
	objects := map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("controllerregistrations"): {
			registration("a", worker("local", nil), gardencore.ControllerResource{Kind: "Network", Type: "calico", Primary: new(true)}),
			registration("b", worker("aws", nil), gardencore.ControllerResource{Kind: "Bastion", Type: "x", Primary: new(false)}),
		},
	}
	p := controllerRegistrationResourcesPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: objects}})
	for name, test := range map[string]struct {
		registration *gardencore.ControllerRegistration
		forbidden    bool
	}{
		"free":  {registration("new", worker("gcp", nil)), false},
		"taken": {registration("new", worker("aws", nil)), true},
		"taken, explicitly": {
			registration("new", gardencore.ControllerResource{Kind: "Network", Type: "calico", Primary: new(true)}), true},
		"secondary":                {registration("new", worker("aws", new(false))), false},
		"its own":                  {registration("b", worker("aws", nil)), false},
		"other one is secondary":   {registration("new", gardencore.ControllerResource{Kind: "Bastion", Type: "x"}), false},
		"a later type covers it":   {registration("new", worker("local", nil)), false},
		"the last type of others":  {registration("b", worker("local", nil)), true},
		"type of another resource": {registration("new", gardencore.ControllerResource{Kind: "Network", Type: "aws"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.(admission.ValidationInterface).Validate(context.Background(),
				admission.NewAttributesRecord(test.registration, nil, gardencore.Kind("ControllerRegistration").WithVersion("v1beta1"), "",
					test.registration.Name, gardencore.Resource("controllerregistrations").WithVersion("v1beta1"), "", admission.Create,
					nil, false, nil), nil)
			if apierrors.IsForbidden(err) != test.forbidden || !test.forbidden && err != nil {
				t.Errorf("got %v, want forbidden: %v", err, test.forbidden)
			}
		})
	}
}
