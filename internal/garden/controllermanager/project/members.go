package project

import (
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// members are the members of a Project, grouped by the roles that are bound to them.
type members struct {
	owners, admins, userAccessManagers, serviceAccountManagers, viewers []rbacv1.Subject
	// extensions are the members with roles extension:<name>, by name.
	extensions map[string][]rbacv1.Subject
}

// membersOf returns the owner of a Project and the members by their roles. The owner in the specification alone is not
// an admin: the API adds the owner as a member with the role owner.
func membersOf(project *corev1beta1.Project) members {
	m := members{extensions: map[string][]rbacv1.Subject{}}
	if owner := project.Spec.Owner; owner != nil {
		m.owners, m.serviceAccountManagers = add(m.owners, *owner), add(m.serviceAccountManagers, *owner)
	}
	for _, member := range project.Spec.Members {
		for _, role := range append([]string{member.Role}, member.Roles...) {
			m.add(role, member.Subject)
		}
	}
	return m
}

func (m *members) add(role string, subject rbacv1.Subject) {
	switch role {
	case corev1beta1.ProjectMemberOwner:
		m.admins, m.serviceAccountManagers = add(m.admins, subject), add(m.serviceAccountManagers, subject)
	case corev1beta1.ProjectMemberAdmin:
		m.admins = add(m.admins, subject)
	case corev1beta1.ProjectMemberUserAccessManager:
		m.userAccessManagers = add(m.userAccessManagers, subject)
	case corev1beta1.ProjectMemberServiceAccountManager:
		m.serviceAccountManagers = add(m.serviceAccountManagers, subject)
	case corev1beta1.ProjectMemberViewer:
		m.viewers = add(m.viewers, subject)
	default:
		if name, ok := strings.CutPrefix(role, corev1beta1.ProjectMemberExtensionPrefix); ok {
			m.extensions[name] = add(m.extensions[name], subject)
		}
	}
}

func add(subjects []rbacv1.Subject, subject rbacv1.Subject) []rbacv1.Subject {
	if slices.Contains(subjects, subject) {
		return subjects
	}
	return append(subjects, subject)
}
