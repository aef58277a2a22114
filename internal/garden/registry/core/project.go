package core

import (
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

func projects() resource.Definition[*gardencore.Project] {
	return resource.Definition[*gardencore.Project]{
		Resource: gardencore.Resource("projects"), Kind: "Project", Versions: v1beta1, AllowUnconditionalUpdate: true,
		Validate:             validation.ValidateProject,
		ValidateUpdate:       validation.ValidateProjectUpdate,
		ValidateStatusUpdate: validation.ValidateProjectStatusUpdate,
		CopySpec:             func(to, from *gardencore.Project) { to.Spec = from.Spec },
		CopyStatus:           func(to, from *gardencore.Project) { to.Status = from.Status },
		SpecChanged:          func(p, old *gardencore.Project) bool { return !resource.Equal(old.Spec, p.Spec) },
		Canonicalize:         assignOwnerRole,
		Fields: func(p *gardencore.Project) fields.Set {
			return fields.Set{gardencore.ProjectNamespace: ptr.Deref(p.Spec.Namespace, "")}
		},
		Indexed: []string{gardencore.ProjectNamespace},
		Columns: []resource.Column[*gardencore.Project]{
			{Name: "Namespace", Description: "The project's namespace.",
				Value: func(p *gardencore.Project) any { return ptr.Deref(p.Spec.Namespace, resource.Unknown) }},
			{Name: "Status", Description: "The project's phase.",
				Value: func(p *gardencore.Project) any { return resource.OrUnknown(p.Status.Phase) }},
			{Name: "Owner", Description: "Who is responsible for the project.", Value: func(p *gardencore.Project) any {
				return resource.OrUnknown(ptr.Deref(p.Spec.Owner, rbacv1.Subject{}).Name)
			}},
			{Name: "Creator", Description: "Who created the project.", Value: func(p *gardencore.Project) any {
				return resource.OrUnknown(ptr.Deref(p.Spec.CreatedBy, rbacv1.Subject{}).Name)
			}},
		},
	}
}

// assignOwnerRole adds the role owner to the member that spec.owner names, and removes it from all other members.
func assignOwnerRole(project *gardencore.Project) {
	owner := project.Spec.Owner
	if owner == nil {
		return
	}
	isOwner := func(role string) bool { return role == gardencore.ProjectMemberOwner }
	for i := range project.Spec.Members {
		member := &project.Spec.Members[i]
		if member.Name != owner.Name || member.Kind != owner.Kind || member.APIGroup != owner.APIGroup {
			member.Roles = slices.DeleteFunc(member.Roles, isOwner)
		} else if !slices.ContainsFunc(member.Roles, isOwner) {
			member.Roles = append(member.Roles, gardencore.ProjectMemberOwner)
		}
	}
}
