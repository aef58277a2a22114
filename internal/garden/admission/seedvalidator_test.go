package admission

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func usedSeed(change func(*gardencore.Seed)) *gardencore.Seed {
	s := &gardencore.Seed{ObjectMeta: metav1.ObjectMeta{Name: "used", Labels: map[string]string{}}}
	s.Spec.Provider.Zones = []string{"a"}
	if change != nil {
		change(s)
	}
	return s
}

func TestValidateSeed(t *testing.T) {
	const selfHosted = "seed.gardener.cloud/self-hosted-shoot-cluster"
	deps := plugin.Dependencies{Kube: fake.NewClientset(), Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		gardencore.Resource("shoots"): {&gardencore.Shoot{Spec: gardencore.ShootSpec{SeedName: new("used")}}},
		security.Resource("workloadidentities"): {&security.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Name: "wi", Namespace: "garden"},
			Spec: security.WorkloadIdentitySpec{TargetSystem: security.TargetSystem{Type: "aws"}}}},
	}}}
	backup := func(provider string) func(*gardencore.Seed) {
		return func(s *gardencore.Seed) {
			s.Spec.Backup = &gardencore.Backup{Provider: provider, CredentialsRef: &corev1.ObjectReference{
				APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Namespace: "garden", Name: "wi"}}
		}
	}
	for name, test := range map[string]struct {
		op          admission.Operation
		obj, old    *gardencore.Seed
		name        string
		subresource string
		forbidden   bool
	}{
		"create":                     {op: admission.Create, obj: usedSeed(backup("aws"))},
		"create with other provider": {op: admission.Create, obj: usedSeed(backup("gcp")), forbidden: true},
		"update":                     {op: admission.Update, obj: usedSeed(backup("aws")), old: usedSeed(nil)},
		"update with other provider": {op: admission.Update, obj: usedSeed(backup("gcp")), old: usedSeed(nil), forbidden: true},
		"update that drops a zone": {op: admission.Update, obj: usedSeed(func(s *gardencore.Seed) { s.Spec.Provider.Zones = nil }),
			old: usedSeed(nil), forbidden: true},
		"update of the status": {op: admission.Update, subresource: "status",
			obj: usedSeed(func(s *gardencore.Seed) { s.Spec.Provider.Zones = nil }), old: usedSeed(nil)},
		"update that drops a label": {op: admission.Update, obj: usedSeed(nil),
			old: usedSeed(func(s *gardencore.Seed) { s.Labels[selfHosted] = "true" }), forbidden: true},
		"delete while used":     {op: admission.Delete, name: "used", old: usedSeed(nil), forbidden: true},
		"delete all while used": {op: admission.Delete, old: usedSeed(nil), forbidden: true},
		"delete":                {op: admission.Delete, name: "other", old: usedSeed(func(s *gardencore.Seed) { s.Name = "other" })},
	} {
		t.Run(name, func(t *testing.T) {
			var obj, old runtime.Object
			if test.obj != nil {
				obj = test.obj
			}
			if test.old != nil {
				old = test.old
			}
			p := seedValidatorPlugin.New(deps)
			if !p.Handles(test.op) {
				t.Fatal(p)
			}
			err := p.(admission.ValidationInterface).Validate(
				context.Background(), admission.NewAttributesRecord(obj, old, gardencore.Kind("Seed").WithVersion("v1beta1"), "",
					test.name, gardencore.Resource("seeds").WithVersion("v1beta1"), test.subresource, test.op, nil, false, nil), nil)
			if apierrors.IsForbidden(err) != test.forbidden || !test.forbidden && err != nil {
				t.Errorf("got %v, want forbidden: %v", err, test.forbidden)
			}
		})
	}
}
