package controllermanager

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

func clusterRole(selector string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "role", UID: "uid", Labels: map[string]string{constants.LabelAuthorizationCustomExtensionsPermissions: "true"},
		Annotations: map[string]string{constants.LabelAuthorizationExtensionsServiceAccountSelector: selector},
	}}
}

func account(namespace, name, app string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}}
}

func TestReconcileExtensionClusterRole(t *testing.T) {
	role := clusterRole(`{"matchLabels":{"app":"x"}}`)
	g := kittest.New(t, role,
		account("seed-b", "any", "x"), account("seed-a", "any", "x"), account("seed-a", "other", "y"),
		account("garden-p", "extension-shoot--e", "x"), account("garden-p", "a-member-made-it", "x"),
		account("garden", "extension-shoot--e", "x"), account("default", "extension-shoot--e", "x"))
	r := &ExtensionClusterRole{Base: g.Base()}
	subjects := func() (names []string) {
		g.MustReconcile(r, role)
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "role"}}
		if !g.Exists(binding) {
			t.Fatal("no binding")
		}
		if owner := binding.OwnerReferences; len(owner) != 1 || owner[0].UID != "uid" || owner[0].Kind != "ClusterRole" ||
			binding.RoleRef.Name != "role" {
			t.Errorf("%+v", binding)
		}
		for _, s := range binding.Subjects {
			names = append(names, fmt.Sprintf("%s/%s/%s", s.Kind, s.Namespace, s.Name))
		}
		return names
	}
	want := []string{"ServiceAccount/garden/extension-shoot--e", "ServiceAccount/garden-p/extension-shoot--e",
		"ServiceAccount/seed-a/any", "ServiceAccount/seed-b/any"}
	if got := subjects(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	g.Must(g.Delete(g.Context(), account("seed-b", "any", "x")))
	if got := subjects(); !slices.Equal(got, want[:3]) {
		t.Errorf("after one is gone: %v", got)
	}
	for name, want := range map[string]int{"x": 1, "y": 0} {
		if got := r.clusterRolesOf(t.Context(), account("seed-a", "new", name)); len(got) != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWithoutSelector(t *testing.T) {
	missing := clusterRole("")
	missing.Annotations = nil
	for name, role := range map[string]*rbacv1.ClusterRole{"missing": missing, "no JSON": clusterRole("app=x"),
		"no selector": clusterRole(`{"matchExpressions":[{"key":"a","operator":"Like"}]}`)} {
		g := kittest.New(t, role)
		if _, err := g.Reconcile(&ExtensionClusterRole{Base: g.Base()}, role); err == nil ||
			g.Exists(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "role"}}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unlabelled := clusterRole(`{}`)
	unlabelled.Labels = nil
	g := kittest.New(t, unlabelled, account("seed-a", "any", "x"))
	if _, err := g.Reconcile(&ExtensionClusterRole{Base: g.Base()}, unlabelled); err != nil ||
		g.Exists(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "role"}}) {
		t.Errorf("without the label: %v", err)
	}
}

// TestWithoutLabelAnyMore checks that a ClusterRole that loses its label loses its binding, but no other binding of its
// name.
func TestWithoutLabelAnyMore(t *testing.T) {
	role := clusterRole(`{"matchLabels":{"app":"x"}}`)
	g := kittest.New(t, role, account("seed-a", "any", "x"))
	r, binding := &ExtensionClusterRole{Base: g.Base()}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "role"}}
	g.MustReconcile(r, role)
	before := role.DeepCopy()
	role.Labels = nil
	g.Must(g.Update(g.Context(), role))
	if !mayBeBound().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: role}) {
		t.Error("the update is not noticed")
	}
	if g.MustReconcile(r, role); g.Exists(binding) {
		t.Error("it keeps its binding")
	}
	g.Must(g.Create(g.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "role"}}))
	if g.MustReconcile(r, role); !g.Exists(binding) {
		t.Error("a binding that is not its own is deleted")
	}
}
