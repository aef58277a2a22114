package shootclient

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespacePrefix precedes a Project's name in the name of its namespace, as in the default landscape.
const namespacePrefix = "garden-"

const serviceAccountPrefix = "system:serviceaccount:"

// ParseMember parses USER:ROLE. The user may be a service account, as Kubernetes names it, and the role one of an
// extension.
func ParseMember(text string) (corev1beta1.ProjectMember, error) {
	at := strings.LastIndex(text, ":")
	if extension := strings.LastIndex(text, ":"+corev1beta1.ProjectMemberExtensionPrefix); extension >= 0 {
		at = extension
	}
	if at <= 0 || at == len(text)-1 {
		return corev1beta1.ProjectMember{}, fmt.Errorf("%q: a member is USER:ROLE, such as alice@example.com:admin", text)
	}
	user, role := text[:at], text[at+1:]
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
	if account, isAccount := strings.CutPrefix(user, serviceAccountPrefix); isAccount {
		namespace, name, _ := strings.Cut(account, ":")
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	return corev1beta1.ProjectMember{Subject: subject, Role: role}, nil
}

// mergeMembers returns the members with one entry for each subject, which has all of its roles.
func mergeMembers(members []corev1beta1.ProjectMember) (merged []corev1beta1.ProjectMember) {
	for _, m := range members {
		same := slices.IndexFunc(merged, func(other corev1beta1.ProjectMember) bool { return other.Subject == m.Subject })
		switch {
		case same < 0:
			merged = append(merged, m)
		case !slices.Contains(rolesOf(merged[same]), m.Role):
			merged[same].Roles = append(merged[same].Roles, m.Role)
		}
	}
	return merged
}

func rolesOf(m corev1beta1.ProjectMember) []string { return append([]string{m.Role}, m.Roles...) }

// CreateProject creates a Project in the namespace garden-NAME, and waits until it is ready. created is false for one
// that exists already; if that lacks one of the members, it is an error.
func (c *Client) CreateProject(
	ctx context.Context, name string, members []corev1beta1.ProjectMember) (created bool, err error) {
	members = mergeMembers(members)
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1beta1.ProjectSpec{Namespace: ptr.To(namespacePrefix + name), Members: members}}
	err = c.Client.Create(ctx, project)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("creating the project %s: %w", name, err)
	}
	created = err == nil
	err = wait.PollUntilContextCancel(ctx, cmp.Or(c.PollInterval, DefaultPollInterval), true,
		func(ctx context.Context) (bool, error) {
			if err := c.Get(ctx, client.ObjectKey{Name: name}, project); err != nil {
				return false, fmt.Errorf("reading the project %s: %w", name, err)
			}
			return project.Status.Phase == corev1beta1.ProjectReady, nil
		})
	if isTimeout(ctx, err) {
		return created, fmt.Errorf("project %s is not ready yet (%s): \"kubectl describe project %s\" says more: %w", name,
			cmp.Or(project.Status.Phase, corev1beta1.ProjectPending), name, ctx.Err())
	}
	if err != nil || created {
		return created, err
	}
	for _, m := range members {
		has := slices.ContainsFunc(project.Spec.Members, func(other corev1beta1.ProjectMember) bool {
			return other.Subject == m.Subject && !slices.ContainsFunc(rolesOf(m), func(role string) bool {
				return !slices.Contains(rolesOf(other), role)
			})
		})
		if !has {
			return false, fmt.Errorf("project %s exists already, without %s as %s: \"kubectl edit project %s\" changes that",
				name, m.Name, strings.Join(rolesOf(m), ", "), name)
		}
	}
	return false, nil
}
