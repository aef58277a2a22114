package accesscheck

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

const (
	rbacAPI = "/apis/rbac.authorization.k8s.io/v1"
	// shownPermissions is the maximum number of permissions in a result.
	shownPermissions = 5
)

// permissions are the attempts to find what RBAC gives to groups of attackers: SeedAuthorizer is asked only about what
// RBAC does not allow.
var permissions = []attack{
	{kind: 14, name: "have permissions by RBAC beyond the rules", as: Gardenlet, try: rbacOf(Gardenlet)},
	{kind: 14, name: "have permissions by RBAC beyond the rules", as: Extension, try: rbacOf(Extension)},
	{kind: 14, name: "have permissions by RBAC beyond those of its package", as: Stack, try: rbacOf(Stack)},
}

// isOf reports whether a binding for the subject is for every attacker of a kind, or for gardenlets by their names.
func isOf(as As, subject rbacv1.Subject) bool {
	accounts := as == Extension || as == Stack
	switch subject.Kind {
	case rbacv1.UserKind:
		return as == Gardenlet && strings.HasPrefix(subject.Name, constants.SeedUserNamePrefix)
	case rbacv1.GroupKind:
		return subject.Name == user.AllAuthenticated || subject.Name == user.AllUnauthenticated ||
			as == Gardenlet && subject.Name == constants.SeedsGroup ||
			accounts && subject.Name == serviceaccount.AllServiceAccountsGroup ||
			as == Extension && strings.HasPrefix(subject.Name,
				serviceaccount.ServiceAccountGroupPrefix+seedidentity.NamespacePrefix)
	}
	return false
}

// permission is what every user may do, in Kubernetes and in Gardener.
type permission struct {
	group, resource string
	verbs           string
	// of are the names of the objects, in the namespace; "" for all.
	namespace, of string
}

var ofAllUsers = []permission{
	{group: "authorization.k8s.io", resource: "selfsubjectaccessreviews", verbs: "create"},
	{group: "authorization.k8s.io", resource: "selfsubjectrulesreviews", verbs: "create"},
	{group: "authentication.k8s.io", resource: "selfsubjectreviews", verbs: "create"},
	{group: "authentication.k8s.io", resource: "tokenreviews", verbs: "create"},
	{group: "core.gardener.cloud", resource: "cloudprofiles", verbs: "get list watch"},
	{group: "core.gardener.cloud", resource: "controllerregistrations", verbs: "get list watch"},
	{group: "core.gardener.cloud", resource: "exposureclasses", verbs: "get list watch"},
	{group: "core.gardener.cloud", resource: "seeds", verbs: "get list watch"},
	{group: "apiextensions.k8s.io", resource: "customresourcedefinitions", verbs: "get list watch"},
	{group: "certificates.k8s.io", resource: "clustertrustbundles", verbs: "get list watch"},
	{resource: "configmaps", verbs: "get list watch", namespace: "kube-system", of: "cluster-identity"},
	{resource: "configmaps", verbs: "get list watch", namespace: "gardener-system-public",
		of: "gardener-info kube-root-ca.crt"},
}

func (p permission) covers(group, resource, verb, namespace string, names []string) bool {
	if p.group != group || p.resource != resource || !slices.Contains(strings.Fields(p.verbs), verb) {
		return false
	}
	if p.of == "" {
		return true
	}
	return namespace == p.namespace && len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.Contains(strings.Fields(p.of), name)
	})
}

// beyond returns the permissions of a rule that not all users have, as "verb resource.group".
func beyond(rule rbacv1.PolicyRule, namespace string) (all []string) {
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if slices.ContainsFunc(ofAllUsers, func(p permission) bool {
					return p.covers(group, resource, verb, namespace, rule.ResourceNames)
				}) {
					continue
				}
				text := verb + " " + resource
				if group != "" {
					text += "." + group
				}
				if len(rule.ResourceNames) > 0 {
					text += " " + strings.Join(rule.ResourceNames, ",")
				}
				if namespace != "" {
					text += " in " + namespace
				}
				all = append(all, text)
			}
		}
	}
	return all
}

// rbacOf reads all roles and bindings, as the administrator.
func rbacOf(as As) func(context.Context, *runner) (Result, error) {
	return func(ctx context.Context, r *runner) (Result, error) {
		result := Result{Request: get(rbacAPI + "/clusterrolebindings").String(), Outcome: Refused, Code: http.StatusOK}
		found, err := r.permissionsBeyond(ctx, as)
		switch {
		case hasCode(err, http.StatusForbidden):
			return Result{Request: result.Request, Outcome: Skipped, Code: http.StatusForbidden,
				Answer: "needs a user who may list roles and bindings"}, nil
		case err != nil:
			return Result{}, err
		case len(found) > 0:
			result.Outcome = Open
			result.Answer = strings.Join(found[:min(len(found), shownPermissions)], "; ")
			if more := len(found) - shownPermissions; more > 0 {
				result.Answer += fmt.Sprintf("; and %d more", more)
			}
		default:
			result.Answer = "nothing but what all users may do"
		}
		return result, nil
	}
}

func (r *runner) permissionsBeyond(ctx context.Context, as As) (found []string, err error) {
	clusterRoles, roles := &rbacv1.ClusterRoleList{}, &rbacv1.RoleList{}
	clusterBindings, bindings := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	for path, list := range map[string]any{"/clusterroles": clusterRoles, "/roles": roles,
		"/clusterrolebindings": clusterBindings, "/rolebindings": bindings} {
		if err := r.admin.must(ctx, get(rbacAPI+path), list); err != nil {
			return nil, err
		}
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range clusterRoles.Items {
		rules["ClusterRole "+role.Name] = role.Rules
	}
	for _, role := range roles.Items {
		rules["Role "+role.Namespace+"/"+role.Name] = role.Rules
	}
	add := func(binding, namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		role := "ClusterRole " + ref.Name
		if ref.Kind == "Role" {
			role = "Role " + namespace + "/" + ref.Name
		}
		if !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return isOf(as, s) }) {
			return
		}
		for _, rule := range rules[role] {
			for _, what := range beyond(rule, namespace) {
				found = append(found, what+" by "+binding)
			}
		}
	}
	for _, b := range clusterBindings.Items {
		add("ClusterRoleBinding "+b.Name, "", b.RoleRef, b.Subjects)
	}
	for _, b := range bindings.Items {
		add("RoleBinding "+b.Namespace+"/"+b.Name, b.Namespace, b.RoleRef, b.Subjects)
	}
	return found, nil
}
