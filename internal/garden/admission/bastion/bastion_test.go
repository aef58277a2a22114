package bastion

import (
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/operations"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

// admit asks the plugin in a garden with one Shoot, "s".
func admit(t *testing.T, bastion *operations.Bastion, shoot *gardencore.Shoot, operation admission.Operation) error {
	t.Helper()
	reader := plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{gardencore.Resource("shoots"): {shoot}}}
	p, err := Factory().New(plugin.Dependencies{Reader: reader})
	if err != nil {
		t.Fatal(err)
	}
	return p.(admission.MutationInterface).Admit(t.Context(), admission.NewAttributesRecord(bastion, nil, operations.SchemeGroupVersion.WithKind("Bastion"),
		bastion.Namespace, bastion.Name, operations.SchemeGroupVersion.WithResource("bastions"), "", operation, nil, false, &user.DefaultInfo{Name: "me"}), nil)
}

func objects() (*operations.Bastion, *gardencore.Shoot) {
	bastion := &operations.Bastion{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "garden-dev"}}
	bastion.Spec.ShootRef.Name = "s"
	return bastion, &gardencore.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden-dev", UID: "u"},
		Spec:       gardencore.ShootSpec{SeedName: ptr.To("seed"), Provider: gardencore.Provider{Type: "local", Workers: []gardencore.Worker{{}}}},
	}
}

func TestComplete(t *testing.T) {
	bastion, shoot := objects()
	for range 2 {
		if err := admit(t, bastion, shoot, admission.Create); err != nil {
			t.Fatal(err)
		}
	}
	if *bastion.Spec.SeedName != "seed" || *bastion.Spec.ProviderType != "local" || bastion.Annotations["gardener.cloud/created-by"] != "me" {
		t.Errorf("bastion %+v", bastion)
	}
	if owners := bastion.OwnerReferences; len(owners) != 1 || owners[0].Kind != "Shoot" || owners[0].UID != "u" || !*owners[0].Controller {
		t.Errorf("owners %+v", owners)
	}
	*bastion.Spec.SeedName = "other"
	if *shoot.Spec.SeedName != "seed" {
		t.Error("the Shoot was changed")
	}
	bastion, shoot = objects()
	if err := admit(t, bastion, shoot, admission.Update); err != nil || len(bastion.Annotations) > 0 {
		t.Errorf("updated: %v, %v", err, bastion.Annotations)
	}
}

func TestRefusals(t *testing.T) {
	now := ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		change           func(*operations.Bastion, *gardencore.Shoot)
		created, updated bool // whether it is refused
	}{
		"fit":           {func(*operations.Bastion, *gardencore.Shoot) {}, false, false},
		"no name":       {func(b *operations.Bastion, _ *gardencore.Shoot) { b.Spec.ShootRef.Name = "" }, true, true},
		"no shoot":      {func(b *operations.Bastion, _ *gardencore.Shoot) { b.Spec.ShootRef.Name = "t" }, true, true},
		"elsewhere":     {func(b *operations.Bastion, _ *gardencore.Shoot) { b.Namespace = "garden" }, true, true},
		"deleted shoot": {func(_ *operations.Bastion, s *gardencore.Shoot) { s.DeletionTimestamp = now }, true, false},
		"no seed":       {func(_ *operations.Bastion, s *gardencore.Shoot) { s.Spec.SeedName = nil }, true, true},
		"workerless":    {func(_ *operations.Bastion, s *gardencore.Shoot) { s.Spec.Provider.Workers = nil }, true, true},
		"deleted, no nodes": {func(b *operations.Bastion, s *gardencore.Shoot) {
			b.DeletionTimestamp, s.Spec.Provider.Workers = now, nil
		}, false, false},
		"no SSH": {func(_ *operations.Bastion, s *gardencore.Shoot) {
			s.Spec.Provider.WorkersSettings = &gardencore.WorkersSettings{SSHAccess: &gardencore.SSHAccess{}}
		}, true, true},
	} {
		for operation, refused := range map[admission.Operation]bool{admission.Create: test.created, admission.Update: test.updated} {
			bastion, shoot := objects()
			test.change(bastion, shoot)
			if err := admit(t, bastion, shoot, operation); apierrors.IsInvalid(err) != refused || !refused && err != nil {
				t.Errorf("%s, %s: %v", name, operation, err)
			}
		}
	}
}
