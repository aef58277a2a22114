package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// projectWorld is a Project with a member of each role.
type projectWorld struct {
	name, namespace string
	users           map[string]*accessUser
}

// newProjectWorld creates a Project, which is deleted when the test ends, and waits until each member has the rights
// of its role.
func newProjectWorld(t *testing.T, name string) *projectWorld {
	t.Helper()
	w := &projectWorld{name: "pr-" + name, namespace: "garden-pr-" + name, users: map[string]*accessUser{}}
	members := []any{}
	for role, user := range map[string]string{"admin": "admin", "viewer": "viewer", "uam": "uam", "serviceaccountmanager": "sam"} {
		members = append(members, w.member(user, role))
	}
	projects := dyn.Resource(projectsResource)
	_, err := projects.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": map[string]any{"name": w.name},
		"spec": map[string]any{
			"namespace": w.namespace, "members": members,
			"owner": map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": w.user("owner")},
		},
	}}, created)
	must(t, err)
	t.Cleanup(func() { removeProject(t, w.name) })
	for _, user := range projectUsers {
		w.users[user] = certificateUser(t, suite.DataDir(), w.user(user))
	}
	for user, right := range map[string]authorizationv1.ResourceAttributes{
		"owner":  {Verb: "manage-members", Group: "core.gardener.cloud", Resource: "projects", Name: w.name},
		"admin":  {Verb: "create", Resource: "secrets", Namespace: w.namespace},
		"viewer": {Verb: "list", Resource: "configmaps", Namespace: w.namespace},
		"uam":    {Verb: "manage-members", Group: "core.gardener.cloud", Resource: "projects", Name: w.name},
		"sam":    {Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: w.namespace},
	} {
		w.waitFor(t, user, right, true)
	}
	w.waitFor(t, "owner", authorizationv1.ResourceAttributes{Verb: "create", Resource: "secrets", Namespace: w.namespace}, true)
	w.waitFor(t, "owner", authorizationv1.ResourceAttributes{Verb: "create", Resource: "serviceaccounts", Namespace: w.namespace}, true)
	return w
}

func (w *projectWorld) user(role string) string { return role + "." + w.name + "@example.com" }

func (w *projectWorld) member(user string, roles ...string) map[string]any {
	member := map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": w.user(user), "role": roles[0]}
	if len(roles) > 1 {
		member["roles"] = roles[1:]
	}
	return member
}

// waitFor waits until a user has a right, or has lost it.
func (w *projectWorld) waitFor(t *testing.T, user string, right authorizationv1.ResourceAttributes, want bool) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		got, err := mayDo(ctx, w.users[user], right)
		if err == nil && got != want {
			err = fmt.Errorf("%s may %s %s/%s: %t", user, right.Verb, right.Resource, right.Subresource, got)
		}
		return err
	})
}

func removeProject(t *testing.T, name string) {
	projects, ctx := dyn.Resource(projectsResource), context.Background()
	confirm := []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)
	if _, err := projects.Patch(ctx, name, types.MergePatchType, confirm, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if err := projects.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// patch patches the spec of the Project as a user.
func (w *projectWorld) patch(t *testing.T, user *accessUser, change map[string]any) answer {
	t.Helper()
	data, err := json.Marshal(map[string]any{"spec": change})
	must(t, err)
	a, err := user.Send(t.Context(), http.MethodPatch, "/apis/core.gardener.cloud/v1beta1/projects/"+w.name,
		strings.NewReader(string(data)), true, false)
	must(t, err)
	return a
}

// members returns the current members of the Project, as the API has them.
func (w *projectWorld) members(t *testing.T) []any {
	t.Helper()
	project, err := dyn.Resource(projectsResource).Get(t.Context(), w.name, metav1.GetOptions{})
	must(t, err)
	members, _, err := unstructured.NestedSlice(project.Object, "spec", "members")
	must(t, err)
	return members
}

// TestProjectMembersComeAndGo changes the members of a Project: rights are granted and revoked accordingly.
func TestProjectMembersComeAndGo(t *testing.T) {
	t.Parallel()
	w := newProjectWorld(t, "come")
	newcomer, owner := "stranger", w.users["owner"]
	secrets := authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets", Namespace: w.namespace}
	configMaps := authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps", Namespace: w.namespace}
	tokens := authorizationv1.ResourceAttributes{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: w.namespace}
	project := authorizationv1.ResourceAttributes{Verb: "get", Group: "core.gardener.cloud", Resource: "projects", Name: w.name}
	manage := authorizationv1.ResourceAttributes{Verb: "manage-members", Group: "core.gardener.cloud", Resource: "projects", Name: w.name}
	before := w.members(t)
	for _, step := range []struct {
		roles []string
		want  map[*authorizationv1.ResourceAttributes]bool
	}{
		{[]string{"viewer"}, map[*authorizationv1.ResourceAttributes]bool{&configMaps: true, &secrets: false, &project: true, &tokens: false}},
		{[]string{"admin"}, map[*authorizationv1.ResourceAttributes]bool{&configMaps: true, &secrets: true, &project: true, &manage: false}},
		{[]string{"serviceaccountmanager"},
			map[*authorizationv1.ResourceAttributes]bool{&configMaps: false, &secrets: false, &project: false, &tokens: true}},
		{[]string{"uam"}, map[*authorizationv1.ResourceAttributes]bool{&configMaps: false, &manage: true, &project: true, &tokens: false}},
		{[]string{"viewer", "uam", "serviceaccountmanager"},
			map[*authorizationv1.ResourceAttributes]bool{&configMaps: true, &secrets: false, &manage: true, &tokens: true}},
		{nil, map[*authorizationv1.ResourceAttributes]bool{&configMaps: false, &secrets: false, &project: false, &manage: false, &tokens: false}},
	} {
		members := before
		if step.roles != nil {
			members = append(members[:len(members):len(members)], w.member(newcomer, step.roles...))
		}
		if a := w.patch(t, owner, map[string]any{"members": members}); !a.OK() {
			t.Fatalf("the owner gives a member the roles %v: %s", step.roles, a)
		}
		for right, want := range step.want {
			w.waitFor(t, newcomer, *right, want)
		}
	}
	w.groupsAndAccounts(t, before)
}

// groupsAndAccounts adds members that are no users: a group, and a ServiceAccount of the project.
func (w *projectWorld) groupsAndAccounts(t *testing.T, before []any) {
	t.Helper()
	a, err := w.users["sam"].Send(t.Context(), http.MethodPost, "/api/v1/namespaces/"+w.namespace+"/serviceaccounts",
		strings.NewReader(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}`), false, false)
	must(t, err)
	if !a.OK() {
		t.Fatalf("the service account manager makes a ServiceAccount: %s", a)
	}
	w.users["robot"] = tokenUser(t, kube, config, w.namespace, "robot")
	group := "developers-of-" + w.name
	w.users["developer"] = certificateUser(t, suite.DataDir(), "dora@example.com", group)
	secrets := authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets", Namespace: w.namespace}
	configMaps := authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps", Namespace: w.namespace}
	w.waitFor(t, "robot", configMaps, false)
	robot := map[string]any{"kind": "ServiceAccount", "name": "robot", "namespace": w.namespace, "role": "viewer"}
	developers := map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Group", "name": group, "role": "admin"}
	if a := w.patch(t, w.users["owner"], map[string]any{"members": append(before[:len(before):len(before)], robot, developers)}); !a.OK() {
		t.Fatalf("the owner adds a group and a ServiceAccount: %s", a)
	}
	w.waitFor(t, "robot", configMaps, true)
	w.waitFor(t, "robot", secrets, false)
	w.waitFor(t, "developer", secrets, true)
	if a := w.patch(t, w.users["owner"], map[string]any{"members": before}); !a.OK() {
		t.Fatalf("the owner removes them: %s", a)
	}
	w.waitFor(t, "robot", configMaps, false)
	w.waitFor(t, "developer", secrets, false)
}

// TestProjectIsChangedByWhoMay makes each member change fields of the Project that need more than the right to patch
// it.
func TestProjectIsChangedByWhoMay(t *testing.T) {
	w := newProjectWorld(t, "change")
	members := w.members(t)
	with := func(member map[string]any) map[string]any {
		return map[string]any{"members": append(members[:len(members):len(members)], member)}
	}
	human := with(w.member("newcomer", "viewer"))
	robot := with(map[string]any{"kind": "ServiceAccount", "name": "robot", "namespace": w.namespace, "role": "viewer"})
	tolerations := map[string]any{"tolerations": map[string]any{"whitelist": []any{map[string]any{"key": "e2e"}}}}
	owner := map[string]any{"owner": map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": w.user("admin")}}
	description := map[string]any{"description": "changed"}
	for _, change := range []struct {
		name string
		spec map[string]any
		may  string
	}{
		{"adds a user", human, "owner uam"},
		{"adds a ServiceAccount", robot, "owner admin uam"},
		{"tolerates a taint", tolerations, ""},
		{"makes the admin the owner", owner, "owner uam"},
		{"describes it", description, "owner admin uam"},
	} {
		for _, user := range projectUsers {
			data, err := json.Marshal(map[string]any{"spec": change.spec})
			must(t, err)
			a, err := w.users[user].Send(t.Context(), http.MethodPatch, "/apis/core.gardener.cloud/v1beta1/projects/"+w.name+"?dryRun=All",
				strings.NewReader(string(data)), true, false)
			must(t, err)
			want := strings.Contains(" "+change.may+" ", " "+user+" ")
			if a.OK() != want || !want && a.Code != http.StatusForbidden {
				t.Errorf("the %s %s: %s, expected %t", user, change.name, a, want)
			}
		}
	}
}

// TestProjectMembersCannotEscalate: an admin can bind others to roles with rights that the admin has, and to no
// others.
func TestProjectMembersCannotEscalate(t *testing.T) {
	w := newProjectWorld(t, "escal")
	for role, may := range map[string]bool{
		"gardener.cloud:system:project-viewer": true, "gardener.cloud:system:project-member": true,
		"gardener.cloud:system:project-serviceaccountmanager": false, "cluster-admin": false, "gardener.cloud:system:administrators": false,
	} {
		data, err := json.Marshal(&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: w.user("stranger")}},
		})
		must(t, err)
		a, err := w.users["admin"].Send(t.Context(), http.MethodPost,
			"/apis/rbac.authorization.k8s.io/v1/namespaces/"+w.namespace+"/rolebindings?dryRun=All",
			strings.NewReader(string(data)), false, false)
		must(t, err)
		if a.OK() != may || !may && a.Code != http.StatusForbidden {
			t.Errorf("an admin binds a user to %s: %s, expected %t", role, a, may)
		}
	}
}
