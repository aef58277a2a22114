package admission

import (
	"context"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
)

// projectMutatorPlugin is the admission plugin ProjectMutator, which sets the creator and the owner of a Project and
// makes the owner a member.
var projectMutatorPlugin = plugin.Factory{
	Name:       "ProjectMutator",
	Operations: plugin.OnCreateOrUpdate,
	Admit:      plugin.ForKind(gardencore.Kind("Project"), admitProjectMutator),
}

func admitProjectMutator(_ context.Context, _ plugin.Dependencies, a admission.Attributes, project, _ *gardencore.Project) error {
	if request.IsDeleting(a, project) {
		return nil
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
