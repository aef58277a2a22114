package leastprivilege

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/scheme"
	rbacvalidation "k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// policy has the roles of a cluster, those in manifests and those of Kubernetes.
type policy struct {
	roles               []*rbacv1.Role
	roleBindings        []*rbacv1.RoleBinding
	clusterRoles        []*rbacv1.ClusterRole
	clusterRoleBindings []*rbacv1.ClusterRoleBinding
}

func newPolicy(t *testing.T, files fs.FS, pattern string) *policy {
	t.Helper()
	p := &policy{clusterRoles: pointers(bootstrappolicy.ClusterRoles()), clusterRoleBindings: pointers(bootstrappolicy.ClusterRoleBindings())}
	for _, roles := range bootstrappolicy.NamespaceRoles() {
		p.roles = append(p.roles, pointers(roles)...)
	}
	for _, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		p.roleBindings = append(p.roleBindings, pointers(bindings)...)
	}
	found, err := fs.Glob(files, pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no manifests %s: %v", pattern, err)
	}
	for _, name := range found {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			p.add(t, name, document)
		}
	}
	return p
}

func pointers[T any](all []T) (out []*T) {
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

func (p *policy) add(t *testing.T, name, document string) {
	t.Helper()
	json, err := utilyaml.ToJSON([]byte(document))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	obj, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), json)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	switch obj := obj.(type) {
	case *rbacv1.Role:
		p.roles = append(p.roles, obj)
	case *rbacv1.RoleBinding:
		p.roleBindings = append(p.roleBindings, obj)
	case *rbacv1.ClusterRole:
		p.clusterRoles = append(p.clusterRoles, obj)
	case *rbacv1.ClusterRoleBinding:
		p.clusterRoleBindings = append(p.clusterRoleBindings, obj)
	}
}

// refused returns the requests that the roles do not allow.
func (p *policy) refused(t *testing.T, requests []Request) (refused []Request) {
	t.Helper()
	_, static := rbacvalidation.NewTestRuleResolver(p.roles, p.roleBindings, p.clusterRoles, p.clusterRoleBindings)
	a := rbac.New(static, static, static, static)
	for _, r := range requests {
		if decision, _, err := a.Authorize(t.Context(), r.attributes()); err != nil {
			t.Fatalf("%s: %v", r, err)
		} else if decision != authorizer.DecisionAllow {
			refused = append(refused, r)
		}
	}
	return refused
}

func (r Request) attributes() authorizer.Attributes {
	groups := []string{user.AllAuthenticated}
	if r.User == Bootstrapper {
		groups = append(groups, "system:bootstrappers")
	}
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: r.User, Groups: groups}, Verb: r.Verb, ResourceRequest: true,
		APIGroup: r.Group, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
	}
}

// rules returns the rules that are bound to a component itself, by the names of their roles, without those that all
// users have.
func (p *policy) rules(c Component) map[string]*[]rbacv1.PolicyRule {
	bound := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.UserKind && s.Name == c.User || c.User == Bootstrapper && s.Kind == rbacv1.GroupKind &&
				s.Name == "system:bootstrappers"
		})
	}
	all := map[string]*[]rbacv1.PolicyRule{}
	for _, binding := range p.clusterRoleBindings {
		for _, role := range p.clusterRoles {
			if bound(binding.Subjects) && role.Name == binding.RoleRef.Name {
				all[role.Name] = &role.Rules
			}
		}
	}
	for _, binding := range p.roleBindings {
		for _, role := range p.roles {
			if bound(binding.Subjects) && role.Namespace == binding.Namespace && role.Name == binding.RoleRef.Name {
				all[role.Namespace+"/"+role.Name] = &role.Rules
			}
		}
	}
	return all
}

// right is the smallest part of a rule: one verb for one resource, or for one object of it.
type right struct{ verb, group, resource, name string }

func (r right) String() string {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	request := Request{Group: r.group, Resource: resource, Subresource: subresource}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", r.verb, request.resource(), r.name))
}

// pieces splits rules into single rights. A right that two rules grant is in it twice.
func pieces(rules []rbacv1.PolicyRule) (all []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, right{verb, group, resource, name}.rule())
					}
				}
			}
		}
	}
	return all
}

func (r right) rule() rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{r.verb}, APIGroups: []string{r.group}, Resources: []string{r.resource}}
	if r.name != "" {
		rule.ResourceNames = []string{r.name}
	}
	return rule
}

func rightOf(rule rbacv1.PolicyRule) right {
	r := right{verb: rule.Verbs[0], group: rule.APIGroups[0], resource: rule.Resources[0]}
	if len(rule.ResourceNames) > 0 {
		r.name = rule.ResourceNames[0]
	}
	return r
}
