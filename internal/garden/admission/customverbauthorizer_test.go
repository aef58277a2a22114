package admission

import (
	"context"
	"errors"
	"slices"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

var (
	ann             = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"}
	bob             = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bob"}
	ops             = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "ops"}
	robotCustomVerb = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "garden-dev", Name: "robot"}
	alias           = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:serviceaccount:garden-dev:robot"}
	robots          = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:garden-dev"}
)

func project(owner *rbacv1.Subject, members ...gardencore.ProjectMember) *gardencore.Project {
	return &gardencore.Project{Spec: gardencore.ProjectSpec{Owner: owner, Members: members}}
}

func tolerating(tolerations *gardencore.ProjectTolerations) *gardencore.Project {
	return &gardencore.Project{Spec: gardencore.ProjectSpec{Tolerations: tolerations}}
}

func member(subject rbacv1.Subject, roles ...string) gardencore.ProjectMember {
	return gardencore.ProjectMember{Subject: subject, Roles: roles}
}

func workers(controlPlane ...bool) *gardencore.Shoot {
	shoot := &gardencore.Shoot{}
	for _, yes := range controlPlane {
		worker := gardencore.Worker{}
		if yes {
			worker.ControlPlane = &gardencore.WorkerControlPlane{}
		}
		shoot.Spec.Provider.Workers = append(shoot.Spec.Provider.Workers, worker)
	}
	return shoot
}

func TestVerbs(t *testing.T) {
	profile := func(spec gardencore.NamespacedCloudProfileSpec) *gardencore.NamespacedCloudProfile {
		return &gardencore.NamespacedCloudProfile{Spec: spec}
	}
	everything := profile(gardencore.NamespacedCloudProfileSpec{Kubernetes: &gardencore.KubernetesSettings{},
		MachineImages: []gardencore.MachineImage{{}}, ProviderConfig: &runtime.RawExtension{Raw: []byte("{}")}})
	whitelist := tolerating(&gardencore.ProjectTolerations{Whitelist: []gardencore.Toleration{{Key: "key"}}})
	for name, tc := range map[string]struct {
		kind     string
		obj, old runtime.Object // old is nil for a new object
		user     string
		groups   []string
		want     []string
	}{
		"a new project with members": {"Project", project(&ann, member(ann), member(bob)), nil, "eve", nil,
			[]string{verbManageMembers}},
		"only the owner as a member": {"Project", project(&ann, member(ann, "owner")), nil, "eve", nil, nil},
		"the owner adds members":     {"Project", project(&ann, member(bob)), project(&ann), "ann", nil, nil},
		"a member adds a member": {"Project", project(&ann, member(bob, "admin")), project(&ann),
			"bob", nil, []string{verbManageMembers}},
		"another role": {"Project", project(&ann, member(bob, "uam")),
			project(&ann, member(bob, "viewer")), "bob", nil, []string{verbManageMembers}},
		"a member goes": {"Project", project(&ann), project(&ann, member(bob)), "bob", nil,
			[]string{verbManageMembers}},
		"service accounts come and go": {"Project", project(&ann, member(robotCustomVerb)), project(&ann, member(alias)), "bob", nil, nil},
		"a group of service accounts": {"Project", project(&ann, member(robots)), project(&ann), "bob", nil,
			[]string{verbManageMembers}},
		"a group owns it":           {"Project", project(&ops, member(bob)), project(&ops), "bob", []string{"ops"}, nil},
		"a service account owns it": {"Project", project(&robotCustomVerb, member(bob)), project(&robotCustomVerb), alias.Name, nil, nil},
		"another service account": {"Project", project(&robotCustomVerb, member(bob)), project(&robotCustomVerb),
			alias.Name + "2", nil, []string{verbManageMembers}},
		"another user takes it over": {"Project", project(&bob), project(&ann), "bob", nil, []string{verbManageMembers}},
		"the owner gives it away":    {"Project", project(&bob), project(&ann), "ann", nil, nil},
		"whitelist": {"Project", whitelist, tolerating(nil), "eve", nil,
			[]string{verbModifyTolerationsWhitelist}},
		"the whitelist goes": {"Project", tolerating(nil), whitelist, "eve", nil,
			[]string{verbModifyTolerationsWhitelist}},
		"default tolerations": {"Project", tolerating(
			&gardencore.ProjectTolerations{Defaults: []gardencore.Toleration{{}}}), tolerating(&gardencore.ProjectTolerations{}), "eve", nil, nil},
		"a cloud profile with a parent only": {
			"NamespacedCloudProfile", profile(gardencore.NamespacedCloudProfileSpec{}), nil, "eve", nil, nil},
		"each guarded field of a cloud profile": {"NamespacedCloudProfile", everything, nil, "eve", nil,
			[]string{verbModifyKubernetes, verbModifyMachineImages, verbModifyProviderConfig}},
		"an unchanged cloud profile": {"NamespacedCloudProfile", everything, everything, "eve", nil, nil},
		"a new shoot":                {"Shoot", workers(false), nil, "eve", nil, nil},
		"a new self-hosted shoot":    {"Shoot", workers(false, true), nil, "eve", nil, []string{verbMarkSelfHosted}},
		"a shoot that is not self-hosted any more": {"Shoot", workers(false), workers(false, true), "eve", nil,
			[]string{verbMarkSelfHosted}},
		"another pool beside that of the control plane": {"Shoot", workers(true, false), workers(true), "eve", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Update
			if tc.old == nil {
				operation = admission.Create
			}
			a := admission.NewAttributesRecord(tc.obj, tc.old, gardencore.Kind(tc.kind).WithVersion(""), "garden-dev", "name",
				gardencore.Resource("things").WithVersion(""),
				"", operation, nil, false, &user.DefaultInfo{Name: tc.user, Groups: tc.groups})
			var asked []string
			if err := runValidateCustomVerb(a, func(record authorizer.Attributes) (authorizer.Decision, error) {
				asked = append(asked, record.GetVerb())
				return authorizer.DecisionAllow, nil
			}); err != nil || !slices.Equal(asked, tc.want) {
				t.Fatalf("asked for %v, want %v; error %v", asked, tc.want, err)
			}
			denied := runValidateCustomVerb(a, func(authorizer.Attributes) (authorizer.Decision, error) { return authorizer.DecisionNoOpinion, nil })
			broken := runValidateCustomVerb(a, func(authorizer.Attributes) (authorizer.Decision, error) {
				return authorizer.DecisionNoOpinion, errors.New("broken")
			})
			if needed := len(tc.want) > 0; apierrors.IsForbidden(denied) != needed || apierrors.IsInternalError(broken) != needed {
				t.Fatalf("without the verb: %v; with a broken authorizer: %v", denied, broken)
			}
		})
	}
}

func runValidateCustomVerb(a admission.Attributes, decide func(authorizer.Attributes) (authorizer.Decision, error)) error {
	p := customVerbPlugin.New(plugin.Dependencies{
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, record authorizer.Attributes) (authorizer.Decision, string, error) {
			decision, err := decide(record)
			return decision, "", err
		})})
	return p.(admission.ValidationInterface).Validate(context.Background(), a, nil)
}
