package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

// tolerations parses tolerations in the form "key=value other-key".
func tolerations(s string) []gardencore.Toleration {
	var all []gardencore.Toleration
	for _, word := range strings.Fields(s) {
		key, value, hasValue := strings.Cut(word, "=")
		toleration := gardencore.Toleration{Key: key}
		if hasValue {
			toleration.Value = &value
		}
		all = append(all, toleration)
	}
	return all
}

func showTolerations(all []gardencore.Toleration) string {
	var words []string
	for _, toleration := range all {
		word := toleration.Key
		if toleration.Value != nil {
			word += "=" + *toleration.Value
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestPlugin(t *testing.T) {
	project := &gardencore.Project{Spec: gardencore.ProjectSpec{
		Namespace:   new("garden-it"),
		Tolerations: &gardencore.ProjectTolerations{Defaults: tolerations("lab gpu=any"), Whitelist: tolerations("lab gpu=any gpu=big open")},
	}}
	p := shootTolerationPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("projects"): {project},
	}}})
	for name, test := range map[string]struct {
		namespace string
		old       *string
		shoot     string
		want      string
		refused   string // a part of the 403's message; empty if the request is allowed
	}{
		"defaults":                {want: "lab gpu=any"},
		"own value for a key":     {shoot: "gpu=big", want: "gpu=big lab"},
		"any value of a key":      {shoot: "open=yes", want: "open=yes lab gpu=any"},
		"not allowed":             {shoot: "open secret", want: "open secret lab gpu=any", refused: "spec.tolerations[1]"},
		"another value":           {shoot: "gpu=small", want: "gpu=small lab", refused: "spec.tolerations[0]"},
		"no defaults in updates":  {old: new(""), shoot: "open", want: "open"},
		"what it had may stay":    {old: new("secret"), shoot: "secret", want: "secret"},
		"a changed one may not":   {old: new("secret"), shoot: "secret=1", want: "secret=1", refused: "spec.tolerations[0]"},
		"namespace of no project": {namespace: "default", refused: "metadata.namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "garden-it"}
			if test.namespace != "" {
				meta.Namespace = test.namespace
			}
			shoot := &gardencore.Shoot{ObjectMeta: meta, Spec: gardencore.ShootSpec{Tolerations: tolerations(test.shoot)}}
			operation, old := admission.Create, runtime.Object(nil)
			if test.old != nil {
				operation, old = admission.Update,
					&gardencore.Shoot{ObjectMeta: meta, Spec: gardencore.ShootSpec{Tolerations: tolerations(ptr.Deref(test.old, ""))}}
			}
			a := admission.NewAttributesRecord(shoot, old, gardencore.Kind("Shoot").WithVersion("v1beta1"), meta.Namespace, "",
				gardencore.Resource("shoots").WithVersion("v1beta1"), "", operation, nil, false, nil)
			err := p.(admission.MutationInterface).Admit(context.Background(), a, nil)
			if err == nil {
				if got := showTolerations(shoot.Spec.Tolerations); got != test.want {
					t.Errorf("tolerations %q, want %q", got, test.want)
				}
				err = p.(admission.ValidationInterface).Validate(context.Background(), a, nil)
			}
			if (err == nil) != (test.refused == "") || err != nil &&
				(!apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), test.refused)) {
				t.Errorf("error %v, want one about %q", err, test.refused)
			}
		})
	}
}
