package shootcommon

import (
	"errors"
	"fmt"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

func attributes(operation admission.Operation, obj, old runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(obj, old, gardencore.Kind("Shoot").WithVersion("v1beta1"), "garden-p", "s",
		gardencore.Resource("shoots").WithVersion("v1beta1"), "", operation, nil, false, nil)
}

func TestRefused(t *testing.T) {
	wrong := field.Required(field.NewPath("spec"), "")
	for name, test := range map[string]struct {
		err  error
		code int32
	}{
		"field":          {wrong, 403},
		"wrapped field":  {fmt.Errorf("x: %w", wrong), 403},
		"API error":      {apierrors.NewBadRequest("x"), 400},
		"storage's word": {fmt.Errorf("x: %w", hideStatus{apierrors.NewNotFound(schema.GroupResource{}, "x")}), 500},
		"other":          {errors.New("x"), 500},
	} {
		status := apierrors.APIStatus(nil)
		if err := request.ToAPIError(attributes(admission.Create, &gardencore.Shoot{}, nil), test.err); !errors.As(err, &status) ||
			status.Status().Code != test.code {
			t.Errorf("%s: got %v, want %d", name, err, test.code)
		}
	}
	if err := request.ToAPIError(nil, nil); err != nil {
		t.Errorf("no error must stay none, is %v", err)
	}
}

func TestReferences(t *testing.T) {
	r := plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("projects"): {&gardencore.Project{ObjectMeta: metav1.ObjectMeta{Name: "none"}},
			&gardencore.Project{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: gardencore.ProjectSpec{Namespace: new("garden-p")}}},
		gardencore.Resource("seeds"): {&gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}}},
	}}
	if project, err := Project(t.Context(), r, "garden-p"); err != nil || project.Name != "p" {
		t.Errorf("got %v, %v", project, err)
	}
	_, err := Project(t.Context(), r, "other")
	wantField(t, err, "metadata.namespace")

	shoot := &gardencore.Shoot{}
	if seed, err := Seed(t.Context(), r, shoot); err != nil || seed != nil {
		t.Errorf("no name, no seed; got %v, %v", seed, err)
	}
	shoot.Spec.SeedName = new("seed")
	if seed, err := Seed(t.Context(), r, shoot); err != nil || seed.Name != "seed" {
		t.Errorf("got %v, %v", seed, err)
	}
	shoot.Spec.SeedName = new("other")
	_, err = Seed(t.Context(), r, shoot)
	wantField(t, err, "spec.seedName")
}

func wantField(t *testing.T, err error, name string) {
	t.Helper()
	if fieldErr := (*field.Error)(nil); !errors.As(err, &fieldErr) || fieldErr.Field != name || fieldErr.Type != field.ErrorTypeNotFound {
		t.Errorf("should be that %s is not found, is %v", name, err)
	}
}
