package project

import (
	"reflect"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func clusterRoleBinding(name string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func roleBinding(name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: made, Name: name}}
}

func names(subjects []rbacv1.Subject) (names []string) {
	for _, subject := range subjects {
		names = append(names, subject.Name)
	}
	return names
}

// TestRoles checks Gardener's table of project roles: for each role of a member, the roles that are bound to the
// member.
func TestRoles(t *testing.T) {
	everywhere := map[string]func() (client.Object, *[]rbacv1.Subject){}
	for _, name := range []string{"project", "project-member", "project-viewer", "project-uam"} {
		everywhere["cluster "+name] = func() (client.Object, *[]rbacv1.Subject) {
			b := clusterRoleBinding("gardener.cloud:system:" + name + ":dev")
			return b, &b.Subjects
		}
	}
	for _, name := range []string{"project-member", "project-viewer", "project-serviceaccountmanager"} {
		everywhere["namespace "+name] = func() (client.Object, *[]rbacv1.Subject) {
			b := roleBinding("gardener.cloud:system:" + name)
			return b, &b.Subjects
		}
	}
	for name, test := range map[string]struct {
		project func(*corev1beta1.Project)
		bound   []string
	}{
		"no members": {func(*corev1beta1.Project) {}, nil},
		"owner of the spec": {func(p *corev1beta1.Project) { p.Spec.Owner = ptr.To(user("me")) },
			[]string{"cluster project", "namespace project-serviceaccountmanager"}},
		"owner": {withMembers(member("me", "owner")),
			[]string{"cluster project-member", "namespace project-member", "namespace project-serviceaccountmanager"}},
		"admin":                 {withMembers(member("me", "admin")), []string{"cluster project-member", "namespace project-member"}},
		"viewer":                {withMembers(member("me", "viewer")), []string{"cluster project-viewer", "namespace project-viewer"}},
		"uam":                   {withMembers(member("me", "uam")), []string{"cluster project-uam"}},
		"serviceaccountmanager": {withMembers(member("me", "serviceaccountmanager")), []string{"namespace project-serviceaccountmanager"}},
		"several, and twice": {withMembers(member("me", "viewer", "uam", "viewer"), member("me", "viewer")),
			[]string{"cluster project-viewer", "namespace project-viewer", "cluster project-uam"}},
		"unknown": {withMembers(member("me", "emperor")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, dev(test.project))
			w.must(w.reconcileDev())
			want := map[string][]string{}
			for _, binding := range test.bound {
				want[binding] = []string{"me"}
			}
			for where, object := range everywhere {
				binding, subjects := object()
				if !w.exists(binding) {
					t.Errorf("%s: there is no binding", where)
				} else if got := names(*subjects); !reflect.DeepEqual(got, want[where]) {
					t.Errorf("%s: bound %v, want %v", where, got, want[where])
				}
			}
		})
	}
}

func TestRules(t *testing.T) {
	w := newWorld(t, dev())
	w.must(w.reconcileDev())
	for name, want := range map[string]map[string][]string{
		"project":        {"namespaces": {"get"}, "projects": {"get", "patch", "manage-members", "update", "delete"}},
		"project-member": {"namespaces": {"get"}, "projects": {"get", "patch", "update", "delete"}},
		"project-viewer": {"namespaces": {"get"}, "projects": {"get"}},
		"project-uam":    {"projects": {"get", "manage-members", "patch", "update"}},
	} {
		role, got := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:" + name + ":dev"}}, map[string][]string{}
		if !w.exists(role) {
			t.Errorf("%s is not there", name)
			continue
		}
		for _, rule := range role.Rules {
			only := map[string]string{"namespaces": made, "projects": "dev"}[rule.Resources[0]]
			if !reflect.DeepEqual(rule.ResourceNames, []string{only}) || len(rule.Resources) != 1 {
				t.Errorf("%s is too wide: %+v", name, rule)
			}
			got[rule.Resources[0]] = rule.Verbs
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if len(role.OwnerReferences) != 1 || role.OwnerReferences[0].UID != "uid-1" || *role.OwnerReferences[0].BlockOwnerDeletion {
			t.Errorf("%s: owners %+v", name, role.OwnerReferences)
		}
	}
}

func TestExtensionRoles(t *testing.T) {
	const name = "gardener.cloud:extension:project:dev:foo"
	w := newWorld(t, dev(withMembers(member("me", "extension:foo"), member("you", "viewer", "extension:foo"))))
	w.must(w.reconcileDev())
	role, binding := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, roleBinding(name)
	if !w.exists(role) || !w.exists(binding) || !reflect.DeepEqual(names(binding.Subjects), []string{"me", "you"}) {
		t.Fatalf("role %+v, binding %+v", role, binding)
	}
	if got := role.AggregationRule.ClusterRoleSelectors[0].MatchLabels; !reflect.DeepEqual(
		got, map[string]string{"rbac.gardener.cloud/aggregate-to-extension-role": "foo"}) {
		t.Errorf("aggregates %v", got)
	}
	// Aggregated rules are kept.
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"x"}, Resources: []string{"y"}, Verbs: []string{"get"}}}
	w.must(w.Client.Update(t.Context(), role))
	w.must(w.reconcileDev())
	if w.exists(role); len(role.Rules) != 1 {
		t.Error("the aggregated rules are gone")
	}
	project := w.project()
	project.Spec.Members = nil
	w.must(w.Client.Update(t.Context(), project))
	w.must(w.reconcileDev())
	if w.exists(role) || w.exists(binding) {
		t.Error("the role stays although no member has it")
	}
}

func TestRepairsBinding(t *testing.T) {
	w := newWorld(t, dev(withMembers(member("me", "viewer"))))
	w.must(w.reconcileDev())
	binding := roleBinding(viewerRole)
	w.must(w.Client.Delete(t.Context(), binding))
	wrong := roleBinding(viewerRole)
	wrong.RoleRef, wrong.Subjects = refTo("cluster-admin"), []rbacv1.Subject{user("thief")}
	w.must(w.Client.Create(t.Context(), wrong))
	w.must(w.reconcileDev())
	if !w.exists(binding) || binding.RoleRef != refTo(viewerRole) || !reflect.DeepEqual(names(binding.Subjects), []string{"me"}) {
		t.Errorf("the binding is %+v", binding)
	}
}
