package admission

import (
	"strings"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/operations"
	networkingv1 "k8s.io/api/networking/v1"
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

const createdBy = "gardener.cloud/created-by"

// ask calls the mutation and then the validation of the plugin as a user, in a garden with one Shoot. It is an update
// if old is not nil.
func ask(t *testing.T, name, subresource string, bastion, old *operations.Bastion, shoot *gardencore.Shoot) error {
	t.Helper()
	reader := plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{gardencore.Resource("shoots"): {shoot}}}
	p := bastionPlugin.New(plugin.Dependencies{Reader: reader})
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	var who user.Info
	if name != "" {
		who = &user.DefaultInfo{Name: name}
	}
	a := admission.NewAttributesRecord(bastion, before, operations.SchemeGroupVersion.WithKind("Bastion"),
		bastion.Namespace, bastion.Name, operations.SchemeGroupVersion.WithResource("bastions"), subresource, operation, nil, false, who)
	if err := p.(admission.MutationInterface).Admit(t.Context(), a, nil); err != nil {
		return err
	}
	return p.(admission.ValidationInterface).Validate(t.Context(), a, nil)
}

func objects() (*operations.Bastion, *gardencore.Shoot) {
	bastion := &operations.Bastion{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "garden-dev"}}
	bastion.Spec.ShootRef.Name = "s"
	bastion.Spec.Ingress = ingress("10.0.0.0/8")
	return bastion, &gardencore.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden-dev", UID: "u"},
		Spec: gardencore.ShootSpec{
			SeedName: ptr.To("seed"), Provider: gardencore.Provider{Type: "local", Workers: []gardencore.Worker{{}}}},
	}
}

// admitted returns a Bastion that "me" has created, and its Shoot.
func admitted(t *testing.T) (*operations.Bastion, *gardencore.Shoot) {
	t.Helper()
	bastion, shoot := objects()
	if err := ask(t, "me", "", bastion, nil, shoot); err != nil {
		t.Fatal(err)
	}
	return bastion, shoot
}

func ingress(cidrs ...string) (all []operations.BastionIngressPolicy) {
	for _, cidr := range cidrs {
		all = append(all, operations.BastionIngressPolicy{IPBlock: networkingv1.IPBlock{CIDR: cidr}})
	}
	return all
}

// TestComplete checks that the plugin overwrites what the client sets.
func TestComplete(t *testing.T) {
	for name, change := range map[string]func(*operations.Bastion){
		"nothing":           func(*operations.Bastion) {},
		"another creator":   func(b *operations.Bastion) { b.Annotations = map[string]string{createdBy: "you"} },
		"another seed":      func(b *operations.Bastion) { b.Spec.SeedName = ptr.To("other") },
		"another provider":  func(b *operations.Bastion) { b.Spec.ProviderType = ptr.To("other") },
		"the owner already": func(b *operations.Bastion) { b.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} },
		"no controller": func(b *operations.Bastion) {
			b.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: new(bool)}}
		},
		"owner of what else": func(b *operations.Bastion) { b.OwnerReferences = []metav1.OwnerReference{{UID: "u", Kind: "Seed"}} },
	} {
		t.Run(name, func(t *testing.T) {
			bastion, shoot := objects()
			change(bastion)
			if err := ask(t, "me", "", bastion, nil, shoot); err != nil {
				t.Fatal(err)
			}
			checkComplete(t, bastion)
			old := bastion.DeepCopy()
			change(bastion)
			bastion.Annotations = old.Annotations // the strategy keeps the annotation
			if err := ask(t, "you", "", bastion, old, shoot); err != nil {
				t.Fatal(err)
			}
			checkComplete(t, bastion)
			*bastion.Spec.SeedName = "other"
			if *shoot.Spec.SeedName != "seed" {
				t.Error("the Shoot was changed")
			}
		})
	}
}

func checkComplete(t *testing.T, bastion *operations.Bastion) {
	t.Helper()
	if *bastion.Spec.SeedName != "seed" || *bastion.Spec.ProviderType != "local" || bastion.Annotations[createdBy] != "me" {
		t.Errorf("bastion %+v", bastion)
	}
	if owners := bastion.OwnerReferences; len(owners) != 1 || owners[0].Kind != "Shoot" || owners[0].Name != "s" ||
		owners[0].UID != "u" || !*owners[0].Controller {
		t.Errorf("owners %+v", owners)
	}
}

// TestCreatorIsWhoAsks checks that a request without a user leaves the creator empty, whatever creator the client sets.
func TestCreatorIsWhoAsks(t *testing.T) {
	bastion, shoot := objects()
	bastion.Annotations = map[string]string{createdBy: "you"}
	if err := ask(t, "", "", bastion, nil, shoot); err != nil || bastion.Annotations[createdBy] != "" {
		t.Errorf("%v, made by %q", err, bastion.Annotations[createdBy])
	}
}

func TestMovedShoot(t *testing.T) {
	bastion, shoot := admitted(t)
	shoot.Spec.SeedName = ptr.To("other")
	old := bastion.DeepCopy()
	bastion.Spec.SeedName = nil
	if err := ask(t, "me", "", bastion, old, shoot); err != nil || *bastion.Spec.SeedName != "seed" {
		t.Errorf("%v, on the seed %s", err, *bastion.Spec.SeedName)
	}
	old.Spec.SeedName = nil // admission always sets it
	if err := ask(t, "me", "", bastion, old, shoot); err != nil || *bastion.Spec.SeedName != "other" {
		t.Errorf("%v, on the seed %s", err, *bastion.Spec.SeedName)
	}
}

func TestRefusals(t *testing.T) {
	now := ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		change           func(*operations.Bastion, *gardencore.Shoot)
		created, updated string // a part of the error message if it is refused
	}{
		"fit":           {func(*operations.Bastion, *gardencore.Shoot) {}, "", ""},
		"no name":       {func(b *operations.Bastion, _ *gardencore.Shoot) { b.Spec.ShootRef.Name = "" }, "must name", "must name"},
		"no shoot":      {func(b *operations.Bastion, _ *gardencore.Shoot) { b.Spec.ShootRef.Name = "t" }, "is not a Shoot", "is not a Shoot"},
		"elsewhere":     {func(b *operations.Bastion, _ *gardencore.Shoot) { b.Namespace = "garden" }, "is not a Shoot", "is not a Shoot"},
		"deleted shoot": {func(_ *operations.Bastion, s *gardencore.Shoot) { s.DeletionTimestamp = now }, "is being deleted", ""},
		"no seed":       {func(_ *operations.Bastion, s *gardencore.Shoot) { s.Spec.SeedName = nil }, "has no seed", "has no seed"},
		"empty seed":    {func(_ *operations.Bastion, s *gardencore.Shoot) { s.Spec.SeedName = new(string) }, "has no seed", "has no seed"},
		"workerless":    {func(_ *operations.Bastion, s *gardencore.Shoot) { s.Spec.Provider.Workers = nil }, "SSH", "SSH"},
		"says that it is deleted": {func(b *operations.Bastion, s *gardencore.Shoot) {
			b.DeletionTimestamp, s.Spec.Provider.Workers = now, nil
		}, "SSH", "SSH"},
		"no SSH": {func(_ *operations.Bastion, s *gardencore.Shoot) { sshAccess(s, false) }, "SSH", "SSH"},
		"SSH":    {func(_ *operations.Bastion, s *gardencore.Shoot) { sshAccess(s, true) }, "", ""},
	} {
		for said, old := range map[string]bool{"created: " + test.created: false, "updated: " + test.updated: true} {
			bastion, shoot := objects()
			var before *operations.Bastion
			if old {
				before = bastion.DeepCopy()
			}
			test.change(bastion, shoot)
			err := ask(t, "me", "", bastion, before, shoot)
			_, want, _ := strings.Cut(said, ": ")
			if want == "" && err != nil || want != "" &&
				(!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "spec.shootRef.name")) {
				t.Errorf("%s, %s: %v", name, said, err)
			}
		}
	}
}

func sshAccess(shoot *gardencore.Shoot, enabled bool) {
	shoot.Spec.Provider.WorkersSettings = &gardencore.WorkersSettings{SSHAccess: &gardencore.SSHAccess{Enabled: enabled}}
}

// TestDeleted checks that the finalizers of a Bastion can be removed whatever the state of its Shoot, and that its seed
// stays.
func TestDeleted(t *testing.T) {
	for name, change := range map[string]func(*gardencore.Shoot){
		"gone":    func(s *gardencore.Shoot) { s.Name = "t" },
		"no seed": func(s *gardencore.Shoot) { s.Spec.SeedName = nil },
		"moved":   func(s *gardencore.Shoot) { s.Spec.SeedName = ptr.To("other") },
		"no SSH":  func(s *gardencore.Shoot) { sshAccess(s, false) },
	} {
		bastion, shoot := admitted(t)
		change(shoot)
		bastion.Finalizers, bastion.DeletionTimestamp = []string{"gardener"}, ptr.To(metav1.Now())
		old := bastion.DeepCopy()
		bastion.Finalizers, bastion.Spec.SeedName, bastion.DeletionTimestamp = nil, ptr.To("other"), nil
		if err := ask(t, "gardenlet", "", bastion, old, shoot); err != nil || *bastion.Spec.SeedName != "seed" {
			t.Errorf("%s: %v, on the seed %s", name, err, *bastion.Spec.SeedName)
		}
		bastion.Spec.Ingress = ingress("0.0.0.0/0")
		if err := ask(t, "gardenlet", "", bastion, old, shoot); !apierrors.IsForbidden(err) {
			t.Errorf("%s: opened by another user: %v", name, err)
		}
	}
}

func TestIngressIsTheCreators(t *testing.T) {
	for name, test := range map[string]struct {
		user, creator string
		ingress       []operations.BastionIngressPolicy
		refused       bool
	}{
		"same":                   {"you", "me", ingress("10.0.0.0/8"), false},
		"creator":                {"me", "me", ingress("11.0.0.0/8"), false},
		"creator, another range": {"me", "me", ingress("10.0.0.0/8", "11.0.0.0/8"), false},
		"another user":           {"you", "me", ingress("11.0.0.0/8"), true},
		"another range":          {"you", "me", ingress("10.0.0.0/8", "11.0.0.0/8"), true},
		"a smaller range":        {"you", "me", ingress("10.0.0.0/9"), true},
		"no range":               {"you", "me", nil, true},
		"an exception": {"you", "me",
			[]operations.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"10.0.0.0/9"}}}}, true},
		"no user":               {"", "me", ingress("11.0.0.0/8"), true},
		"no user, no creator":   {"", "", ingress("11.0.0.0/8"), true},
		"whom the client names": {"you", "", ingress("11.0.0.0/8"), true},
	} {
		bastion, shoot := admitted(t)
		bastion.Annotations[createdBy] = test.creator
		old := bastion.DeepCopy()
		bastion.Spec.Ingress = test.ingress
		bastion.Annotations[createdBy] = test.user // the strategy refuses this as well
		err := ask(t, test.user, "", bastion, old, shoot)
		if apierrors.IsForbidden(err) != test.refused || !test.refused && err != nil || test.refused &&
			!strings.Contains(err.Error(), "spec.ingress") {
			t.Errorf("%s: %v", name, err)
		}
		if err := ask(t, test.user, "status", bastion, old, shoot); err != nil { // the strategy keeps the spec
			t.Errorf("%s, status: %v", name, err)
		}
	}
}
