package shootclient

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestParseMember(t *testing.T) {
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: name}
	}
	for text, want := range map[string]struct {
		subject rbacv1.Subject
		role    string
	}{
		"alice@example.com:admin": {user("alice@example.com"), "admin"},
		"oidc:bob:viewer":         {user("oidc:bob"), "viewer"},
		"bob:extension:logs":      {user("bob"), "extension:logs"},
		"system:serviceaccount:garden-x:robot:admin": {
			rbacv1.Subject{Kind: "ServiceAccount", Namespace: "garden-x", Name: "robot"}, "admin"},
		"alice": {}, ":admin": {}, "alice:": {}, "": {},
	} {
		got, err := ParseMember(text)
		if got.Subject != want.subject || got.Role != want.role || (err != nil) != (want.role == "") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// TestCreateProject: it is made with its members, awaited, and not changed if it exists.
func TestCreateProject(t *testing.T) { synctest.Test(t, testCreateProject) }

func testCreateProject(t *testing.T) {
	c := garden(t, nil)
	var members []corev1beta1.ProjectMember
	for _, text := range []string{"alice:admin", "bob:viewer", "alice:uam", "alice:admin"} {
		m, err := ParseMember(text)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*c.PollInterval)
	defer cancel()
	if created, err := c.CreateProject(ctx, "team", members); !created || err == nil ||
		!strings.Contains(err.Error(), "is not ready yet (Pending)") {
		t.Errorf("%t, %v", created, err)
	}
	project := &corev1beta1.Project{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "team"}, project); err != nil {
		t.Fatal(err)
	}
	if m := project.Spec.Members; *project.Spec.Namespace != "garden-team" || len(m) != 2 || m[0].Name != "alice" ||
		m[0].Role != "admin" || len(m[0].Roles) != 1 || m[0].Roles[0] != "uam" || m[1].Role != "viewer" {
		t.Errorf("%+v", project.Spec)
	}
	project.Status.Phase = corev1beta1.ProjectReady
	if err := c.Update(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	if created, err := c.CreateProject(t.Context(), "team", members[:2]); created || err != nil {
		t.Errorf("%t, %v", created, err)
	}
	other, _ := ParseMember("bob:admin")
	if _, err := c.CreateProject(t.Context(), "team", []corev1beta1.ProjectMember{other}); err == nil ||
		!strings.Contains(err.Error(), "without bob as admin") {
		t.Error(err)
	}
}
