// Package projectmutator contains the admission plugin ProjectMutator, which sets the creator and the owner of a
// Project and makes the owner a member. It may import the plugin and request packages.
package projectmutator

import (
	"context"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "ProjectMutator", New: func(plugin.Dependencies) (admission.Interface, error) {
		return &mutator{admission.NewHandler(admission.Create, admission.Update)}, nil
	}}
}

type mutator struct{ *admission.Handler }

var _ admission.MutationInterface = &mutator{}

// Admit implements admission.MutationInterface.
func (m *mutator) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !request.IsForKind(a, gardencore.Kind("Project")) {
		return nil
	}
	project, _, err := request.Objects[gardencore.Project](a)
	if err != nil || request.IsDeleting(a, project) {
		return err
	}
	if a.GetOperation() == admission.Create {
		project.Spec.CreatedBy = &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: a.GetUserInfo().GetName()}
		if project.Spec.Owner == nil {
			project.Spec.Owner = chooseOwner(project)
		}
	}
	makeOwnerMember(project)
	return nil
}

// chooseOwner returns the first member with the role owner, or else the creator of the Project.
func chooseOwner(project *gardencore.Project) *rbacv1.Subject {
	for _, member := range project.Spec.Members {
		if slices.Contains(member.Roles, gardencore.ProjectMemberOwner) {
			return member.Subject.DeepCopy()
		}
	}
	return project.Spec.CreatedBy.DeepCopy()
}

func makeOwnerMember(project *gardencore.Project) {
	owner := project.Spec.Owner
	if owner == nil || slices.ContainsFunc(project.Spec.Members, func(m gardencore.ProjectMember) bool { return m.Subject == *owner }) {
		return
	}
	project.Spec.Members = append(project.Spec.Members, gardencore.ProjectMember{
		Subject: *owner,
		Roles:   []string{gardencore.ProjectMemberAdmin, gardencore.ProjectMemberOwner},
	})
}
