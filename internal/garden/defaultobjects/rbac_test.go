package defaultobjects

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/manifests"
)

// policy is the RBAC of a garden.
type policy struct {
	clusterRoles map[string]rbacv1.ClusterRole
	roles        map[string]rbacv1.Role
	bindings     []rbacv1.ClusterRoleBinding
	roleBindings []rbacv1.RoleBinding
}

func loadPolicy(t *testing.T) policy {
	t.Helper()
	objects, err := manifest.LoadFS(manifests.FS, "garden")
	if err != nil {
		t.Fatal(err)
	}
	p := policy{clusterRoles: map[string]rbacv1.ClusterRole{}, roles: map[string]rbacv1.Role{}}
	for _, obj := range objects {
		switch obj.GetKind() {
		case "ClusterRole":
			role := convert[rbacv1.ClusterRole](t, obj)
			p.clusterRoles[role.Name] = role
		case "Role":
			role := convert[rbacv1.Role](t, obj)
			p.roles[role.Namespace+"/"+role.Name] = role
		case "ClusterRoleBinding":
			p.bindings = append(p.bindings, convert[rbacv1.ClusterRoleBinding](t, obj))
		case "RoleBinding":
			p.roleBindings = append(p.roleBindings, convert[rbacv1.RoleBinding](t, obj))
		}
	}
	return p
}

// convert fails on fields that the kind does not have: a typing error would silently grant less.
func convert[T any](t *testing.T, obj manifest.Object) (into T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, &into, true); err != nil {
		t.Fatalf("%s: %v", obj.Source, err)
	}
	return into
}

func rule(group, resource, verb string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
}

// aggregated returns the rules of a ClusterRole as the aggregation controller would fill them in.
func (p policy) aggregated(name string) []rbacv1.PolicyRule {
	role := p.clusterRoles[name]
	rules := slices.Clone(role.Rules)
	if role.AggregationRule != nil {
		for _, selector := range role.AggregationRule.ClusterRoleSelectors {
			for _, other := range p.clusterRoles {
				matches := other.Name != name
				for key, value := range selector.MatchLabels {
					matches = matches && other.Labels[key] == value
				}
				if matches {
					rules = append(rules, p.aggregated(other.Name)...)
				}
			}
		}
	}
	return rules
}

func TestRoles(t *testing.T) {
	p := loadPolicy(t)
	for role, expect := range map[string]struct{ may, mayNot []rbacv1.PolicyRule }{
		"gardener.cloud:system:project-member": {
			may: []rbacv1.PolicyRule{
				rule("core.gardener.cloud", "shoots", "deletecollection"), rule("core.gardener.cloud", "shoots/adminkubeconfig", "create"),
				rule("operations.gardener.cloud", "bastions", "create"), rule("operations.gardener.cloud", "bastions", "delete"),
				rule("", "secrets", "get"), rule("core.gardener.cloud", "shoots/viewerkubeconfig", "create"),
			},
			mayNot: []rbacv1.PolicyRule{
				rule("security.gardener.cloud", "workloadidentities/token", "create"), rule("core.gardener.cloud", "shoots/status", "update"),
				rule("core.gardener.cloud", "shoots/binding", "update"), rule("core.gardener.cloud", "internalsecrets", "get"),
				rule("", "serviceaccounts", "create"), rule("", "serviceaccounts/token", "create"), rule("core.gardener.cloud", "shootstates", "get"),
				rule("rbac.authorization.k8s.io", "roles", "escalate"), rule("rbac.authorization.k8s.io", "clusterroles", "bind"),
			},
		},
		"gardener.cloud:system:project-viewer": {
			may: []rbacv1.PolicyRule{rule("core.gardener.cloud", "shoots", "watch"),
				rule("core.gardener.cloud", "shoots/viewerkubeconfig", "create"), rule("operations.gardener.cloud", "bastions", "get")},
			mayNot: []rbacv1.PolicyRule{rule("", "secrets", "get"), rule("core.gardener.cloud", "shoots/adminkubeconfig", "create"),
				rule("core.gardener.cloud", "shoots", "update"), rule("operations.gardener.cloud", "bastions", "create")},
		},
		"gardener.cloud:system:project-serviceaccountmanager": {
			may:    []rbacv1.PolicyRule{rule("", "serviceaccounts", "create"), rule("", "serviceaccounts/token", "create")},
			mayNot: []rbacv1.PolicyRule{rule("", "secrets", "get")},
		},
		"gardener.cloud:system:administrators": {
			may: []rbacv1.PolicyRule{rule("core.gardener.cloud", "seeds", "delete"), rule("", "secrets", "get"),
				rule("", "serviceaccounts/token", "create"), rule("core.gardener.cloud", "projects", "manage-members")},
			mayNot: []rbacv1.PolicyRule{rule("security.gardener.cloud", "workloadidentities/token", "create"),
				rule("rbac.authorization.k8s.io", "clusterroles", "escalate")},
		},
		"gardener.cloud:system:viewers": {
			may: []rbacv1.PolicyRule{rule("core.gardener.cloud", "seeds", "list"), rule("operations.gardener.cloud", "bastions", "watch")},
			mayNot: []rbacv1.PolicyRule{rule("", "secrets", "get"), rule("core.gardener.cloud", "internalsecrets", "get"),
				rule("core.gardener.cloud", "seeds", "update")},
		},
		"gardener.cloud:system:seed-bootstrapper": {
			may: []rbacv1.PolicyRule{rule("certificates.k8s.io", "certificatesigningrequests", "create"),
				rule("certificates.k8s.io", "certificatesigningrequests/seedclient", "create")},
			mayNot: []rbacv1.PolicyRule{rule("certificates.k8s.io", "certificatesigningrequests", "list"),
				rule("certificates.k8s.io", "certificatesigningrequests/approval", "update")},
		},
		"gardener.cloud:system:scheduler": {
			may: []rbacv1.PolicyRule{rule("core.gardener.cloud", "shoots/binding", "update"),
				rule("core.gardener.cloud", "shoots/status", "patch")},
			mayNot: []rbacv1.PolicyRule{rule("", "secrets", "get"), rule("", "configmaps", "get"),
				rule("core.gardener.cloud", "shoots", "delete"), rule("core.gardener.cloud", "seeds", "update")},
		},
		"gardener.cloud:system:admission-controller": {
			may: []rbacv1.PolicyRule{rule("core.gardener.cloud", "shoots", "watch"), rule("", "secrets", "get")},
			mayNot: []rbacv1.PolicyRule{
				rule("core.gardener.cloud", "shoots", "update"), rule("", "secrets", "create"),
				rule("admissionregistration.k8s.io", "validatingwebhookconfigurations", "create"),
				rule("admissionregistration.k8s.io", "validatingwebhookconfigurations", "update"),
			},
		},
		"gardener.cloud:system:controller-manager": {
			may: []rbacv1.PolicyRule{rule("core.gardener.cloud", "projects/status", "patch"),
				rule("certificates.k8s.io", "certificatesigningrequests/approval", "update"), rule("core.gardener.cloud", "shoots", "patch")},
			mayNot: []rbacv1.PolicyRule{rule("*", "*", "*"), rule("core.gardener.cloud", "shoots/binding", "update"),
				rule("core.gardener.cloud", "shoots/adminkubeconfig", "create"), rule("", "serviceaccounts/token", "create"),
				rule("core.gardener.cloud", "internalsecrets", "create")},
		},
	} {
		t.Run(role, func(t *testing.T) {
			rules := p.aggregated(role)
			for _, may := range expect.may {
				if ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{may}); !ok {
					t.Errorf("may not %s", may.String())
				}
			}
			for _, mayNot := range expect.mayNot {
				if ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{mayNot}); ok {
					t.Errorf("may %s", mayNot.String())
				}
			}
		})
	}
}

// TestBindings checks that bindings refer to existing roles, and that no role is bound to gardenlets.
func TestBindings(t *testing.T) {
	p := loadPolicy(t)
	subjects := map[string][]string{}
	note := func(role string, to []rbacv1.Subject) {
		for _, subject := range to {
			subjects[subject.Name] = append(subjects[subject.Name], role)
		}
	}
	for _, binding := range p.bindings {
		if _, ok := p.clusterRoles[binding.RoleRef.Name]; !ok {
			t.Errorf("%s binds %s, which is not there", binding.Name, binding.RoleRef.Name)
		}
		note(binding.RoleRef.Name, binding.Subjects)
	}
	for _, binding := range p.roleBindings {
		if _, ok := p.roles[binding.Namespace+"/"+binding.RoleRef.Name]; !ok {
			t.Errorf("%s/%s binds %s, which is not there", binding.Namespace, binding.Name, binding.RoleRef.Name)
		}
		note(binding.Namespace+"/"+binding.RoleRef.Name, binding.Subjects)
	}
	want := map[string][]string{
		"system:authenticated": {
			"gardener.cloud:system:read-global-resources", "gardener.cloud:system:user-auth",
			"gardener.cloud:system:workload-identity-issuer-discovery",
			"gardener-system-public/gardener.cloud:system:read-gardener-system-public",
			"kube-system/gardener.cloud:system:read-cluster-identity-configmap",
		},
		"system:bootstrappers": {"gardener.cloud:system:seed-bootstrapper"},
		"system:nodes":         {"gardenlite:stages"},
		"gardener.cloud:system:controller-manager": {
			"gardener.cloud:system:controller-manager", "garden/gardener.cloud:system:controller-manager",
			"gardener-system-seed-lease/gardener.cloud:system:controller-manager",
		},
		"gardener.cloud:system:scheduler":            {"gardener.cloud:system:scheduler", "garden/gardener.cloud:system:scheduler"},
		"gardener.cloud:system:admission-controller": {"gardener.cloud:system:admission-controller"},
		"gardenlite.dev:system:stack-manager": {
			"gardenlite.dev:system:stack-manager", "gardenlite.dev:system:stack-manager:instances", "garden/gardenlite.dev:system:stack-manager",
		},
	}
	for subject, roles := range subjects {
		slices.Sort(roles)
		slices.Sort(want[subject])
		if !slices.Equal(roles, want[subject]) {
			t.Errorf("%s has %v, want %v", subject, roles, want[subject])
		}
	}
	for subject := range want {
		if len(subjects[subject]) == 0 {
			t.Errorf("%s has no role", subject)
		}
	}
}
