package project

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The first three roles are the same for all Projects and are bound in their namespaces;
// manifests/garden/rbac-projects.yaml contains them. Roles with a prefix are created for each Project.
const (
	memberRole                = "gardener.cloud:system:project-member"
	viewerRole                = "gardener.cloud:system:project-viewer"
	serviceAccountManagerRole = "gardener.cloud:system:project-serviceaccountmanager"

	ownerPrefix             = "gardener.cloud:system:project:"
	memberPrefix            = "gardener.cloud:system:project-member:"
	viewerPrefix            = "gardener.cloud:system:project-viewer:"
	userAccessManagerPrefix = "gardener.cloud:system:project-uam:"
	extensionPrefix         = "gardener.cloud:extension:project:"

	// extensionAggregation labels the ClusterRoles that make up an extension role.
	extensionAggregation = "rbac.gardener.cloud/aggregate-to-extension-role"
)

// role describes what a group of members is allowed: a row of the table below.
type role struct {
	subjects []rbacv1.Subject
	// clusterRole is the name of the Project's own ClusterRole. onProject and onNamespace are the verbs that it allows
	// on the Project and on its namespace.
	clusterRole            string
	onProject, onNamespace []string
	// bound is the ClusterRole that is bound in the namespace.
	bound string
}

// rolesOf returns the table of Gardener's project roles.
func rolesOf(project *corev1beta1.Project, m members) []role {
	name := project.Name
	return []role{
		{subjects: m[corev1beta1.ProjectMemberOwner], clusterRole: ownerPrefix + name,
			onProject: []string{"get", "patch", "manage-members", "update", "delete"}, onNamespace: []string{"get"}},
		{subjects: m[corev1beta1.ProjectMemberAdmin], clusterRole: memberPrefix + name,
			onProject: []string{"get", "patch", "update", "delete"}, onNamespace: []string{"get"}, bound: memberRole},
		{subjects: m[corev1beta1.ProjectMemberViewer], clusterRole: viewerPrefix + name,
			onProject: []string{"get"}, onNamespace: []string{"get"}, bound: viewerRole},
		{subjects: m[corev1beta1.ProjectMemberUserAccessManager], clusterRole: userAccessManagerPrefix + name,
			onProject: []string{"get", "manage-members", "patch", "update"}},
		{subjects: m[corev1beta1.ProjectMemberServiceAccountManager], bound: serviceAccountManagerRole},
	}
}

// rules returns the rules of the Project's own ClusterRole.
func (ro role) rules(project *corev1beta1.Project) (rules []rbacv1.PolicyRule) {
	if len(ro.onNamespace) > 0 {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"},
			ResourceNames: []string{*project.Spec.Namespace}, Verbs: ro.onNamespace})
	}
	return append(rules, rbacv1.PolicyRule{APIGroups: []string{corev1beta1.SchemeGroupVersion.Group},
		Resources: []string{"projects"}, ResourceNames: []string{project.Name}, Verbs: ro.onProject})
}

// reconcileRoles binds the roles of the members, and removes the bindings of former members.
func (r *Reconciler) reconcileRoles(ctx context.Context, project *corev1beta1.Project) error {
	m := membersOf(project)
	var errs []error
	for _, role := range rolesOf(project, m) {
		if role.clusterRole != "" {
			errs = append(errs, r.ensureClusterRole(ctx, project, role.clusterRole, nil, func(clusterRole *rbacv1.ClusterRole) {
				clusterRole.AggregationRule, clusterRole.Rules = nil, role.rules(project)
			}))
			errs = append(errs, r.ensureClusterRoleBinding(ctx, project, role.clusterRole, role.subjects))
		}
		if role.bound != "" {
			errs = append(errs, r.ensureRoleBinding(ctx, project, role.bound, nil, role.subjects))
		}
	}
	for _, role := range slices.Sorted(maps.Keys(m)) {
		if name, ok := strings.CutPrefix(role, corev1beta1.ProjectMemberExtensionPrefix); ok {
			errs = append(errs, r.ensureExtensionRole(ctx, project, name, m[role]))
		}
	}
	return errors.Join(append(errs, r.deleteStaleExtensionRoles(ctx, project, m))...)
}

func (r *Reconciler) ensureExtensionRole(ctx context.Context, project *corev1beta1.Project, extension string,
	subjects []rbacv1.Subject) error {
	name := extensionRoleName(project, extension)
	err := r.ensureClusterRole(ctx, project, name, extensionLabels(project), func(clusterRole *rbacv1.ClusterRole) {
		// Kubernetes' aggregation controller sets the rules.
		clusterRole.AggregationRule = &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{extensionAggregation: extension}}}}
	})
	if err != nil {
		return err
	}
	return r.ensureRoleBinding(ctx, project, name, extensionLabels(project), subjects)
}

func extensionRoleName(project *corev1beta1.Project, extension string) string {
	return extensionPrefix + project.Name + ":" + extension
}

func extensionLabels(project *corev1beta1.Project) map[string]string {
	return map[string]string{constants.GardenRole: constants.LabelExtensionProjectRole, constants.ProjectName: project.Name}
}

// deleteStaleExtensionRoles deletes the extension roles that no member has any more.
func (r *Reconciler) deleteStaleExtensionRoles(ctx context.Context, project *corev1beta1.Project, m members) error {
	deleteStale := func(item runtime.Object) error {
		obj := item.(client.Object)
		extension, ok := strings.CutPrefix(obj.GetName(), extensionRoleName(project, ""))
		if _, wanted := m[corev1beta1.ProjectMemberExtensionPrefix+extension]; !ok || wanted {
			return nil
		}
		if err := r.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting what is left of the extension role %q: %w", extension, err)
		}
		return nil
	}
	roleBindings, clusterRoles := &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}
	labels := client.MatchingLabels(extensionLabels(project))
	if err := r.Client.List(ctx, roleBindings, client.InNamespace(*project.Spec.Namespace), labels); err != nil {
		return fmt.Errorf("listing the bindings of extension roles: %w", err)
	}
	if err := r.Client.List(ctx, clusterRoles, labels); err != nil {
		return fmt.Errorf("listing the extension roles: %w", err)
	}
	return errors.Join(meta.EachListItem(roleBindings, deleteStale), meta.EachListItem(clusterRoles, deleteStale))
}

// roleOwner returns owner references that delete an object with its Project, without blocking the deletion of the
// Project.
func roleOwner(project *corev1beta1.Project) []metav1.OwnerReference {
	owner := ownerReference(project)
	owner.BlockOwnerDeletion = ptr.To(false)
	return []metav1.OwnerReference{owner}
}

func (r *Reconciler) ensureClusterRole(ctx context.Context, project *corev1beta1.Project, name string,
	labels map[string]string, fill func(*rbacv1.ClusterRole)) error {
	clusterRole := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, clusterRole, func() error {
		clusterRole.OwnerReferences, clusterRole.Labels = roleOwner(project), labels
		fill(clusterRole)
		return nil
	})
	return because(err, "ClusterRole", name)
}

func (r *Reconciler) ensureClusterRoleBinding(ctx context.Context, project *corev1beta1.Project, name string,
	subjects []rbacv1.Subject) error {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return because(r.ensureBinding(ctx, project, binding, nil, subjects), "ClusterRoleBinding", name)
}

func (r *Reconciler) ensureRoleBinding(ctx context.Context, project *corev1beta1.Project, name string,
	labels map[string]string, subjects []rbacv1.Subject) error {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: *project.Spec.Namespace, Name: name}}
	return because(r.ensureBinding(ctx, project, binding, labels, subjects), "RoleBinding", name)
}

// ensureBinding creates or updates a binding to the ClusterRole of the same name. It first deletes a binding to another
// role, because the roleRef of a binding is immutable.
func (r *Reconciler) ensureBinding(ctx context.Context, project *corev1beta1.Project, binding client.Object,
	labels map[string]string, subjects []rbacv1.Subject) error {
	role, existing := refTo(binding.GetName()), binding.DeepCopyObject().(client.Object)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(binding), existing)
	if ref, _ := contentOf(existing); err == nil && *ref != role {
		uid := existing.GetUID()
		err = r.Client.Delete(ctx, existing, client.Preconditions{UID: &uid})
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, binding, func() error {
		binding.SetOwnerReferences(roleOwner(project))
		binding.SetLabels(labels)
		ref, content := contentOf(binding)
		*ref, *content = role, subjects
		return nil
	})
	return err
}

// contentOf returns the role and the subjects of a RoleBinding or ClusterRoleBinding.
func contentOf(binding client.Object) (*rbacv1.RoleRef, *[]rbacv1.Subject) {
	if b, ok := binding.(*rbacv1.RoleBinding); ok {
		return &b.RoleRef, &b.Subjects
	}
	b := binding.(*rbacv1.ClusterRoleBinding)
	return &b.RoleRef, &b.Subjects
}

func refTo(clusterRole string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}
}

func because(err error, kind, name string) error {
	if err != nil {
		return fmt.Errorf("writing the %s %s: %w", kind, name, err)
	}
	return nil
}

// members are the members of a Project by their role. The owner of the Project has the role owner.
type members map[string][]rbacv1.Subject

// membersOf returns the owner of a Project and the members by their roles. The owner in the specification alone is not
// an admin: the API adds the owner as a member with the role owner, which makes an admin.
func membersOf(project *corev1beta1.Project) members {
	m := members{}
	if owner := project.Spec.Owner; owner != nil {
		m.add(*owner, corev1beta1.ProjectMemberOwner, corev1beta1.ProjectMemberServiceAccountManager)
	}
	for _, member := range project.Spec.Members {
		for _, role := range append([]string{member.Role}, member.Roles...) {
			if role == corev1beta1.ProjectMemberOwner {
				m.add(member.Subject, corev1beta1.ProjectMemberAdmin, corev1beta1.ProjectMemberServiceAccountManager)
			} else {
				m.add(member.Subject, role)
			}
		}
	}
	return m
}

func (m members) add(subject rbacv1.Subject, roles ...string) {
	for _, role := range roles {
		if !slices.Contains(m[role], subject) {
			m[role] = append(m[role], subject)
		}
	}
}
