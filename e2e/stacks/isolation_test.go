package stacks

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// request is a verb on a resource in a place.
type request struct {
	verb               string
	version            schema.GroupVersion
	resource, sub      string
	namespace          string
	namespaced, anyway bool // anyway: every authenticated user may
}

func (r request) String() string {
	return fmt.Sprintf("%s %s/%s %s/%s in %q", r.verb, r.resource, r.sub, r.version.Group, r.version.Version, r.namespace)
}

// isolation compares what a stack may do with the table of "Allowed Resource Access".
type isolation struct {
	l *landscape
	// own is the stack's namespace, other another one.
	own, other  string
	clusterWide bool
	// crds are the groups whose resources "buckets" the stack may use.
	crds []string
}

// allowed reports whether the table allows a request.
func (i *isolation) allowed(r request) bool {
	if !r.namespaced || !i.clusterWide && r.namespace != i.own {
		return false
	}
	if r.version.Group == "" {
		return r.sub == "" && slices.Contains([]string{"configmaps", "secrets", "events"}, r.resource)
	}
	return slices.Contains(i.crds, r.version.Group) && r.resource == "buckets" && slices.Contains([]string{"", "status", "scale"}, r.sub)
}

// requests returns every verb on every resource of discovery: in both namespaces, in all of them, and at cluster
// scope.
func (i *isolation) requests(t *testing.T) (all []request) {
	t.Helper()
	_, lists, err := i.l.kube.Discovery().ServerGroupsAndResources()
	must(t, err)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, resource := range list.APIResources {
			name, sub, _ := strings.Cut(resource.Name, "/")
			namespaces := []string{""}
			if resource.Namespaced {
				namespaces = []string{i.own, i.other, ""}
			}
			for _, verb := range suite.Verbs {
				for _, namespace := range namespaces {
					collection := slices.Contains([]string{"list", "watch"}, verb)
					if resource.Namespaced && namespace == "" && !collection {
						continue // there is no such request
					}
					all = append(all, request{verb, version, name, sub, namespace, resource.Namespaced, false})
				}
			}
		}
	}
	return all
}

// send sends a request, which changes nothing.
func (r request) send(ctx context.Context, user *suite.User) (suite.Answer, error) {
	method := map[string]string{"create": http.MethodPost, "get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet,
		"update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete}[r.verb]
	path := "/api/" + r.version.Version
	if r.version.Group != "" {
		path = "/apis/" + r.version.String()
	}
	if r.namespace != "" {
		path += "/namespaces/" + r.namespace
	}
	path += "/" + r.resource
	if !slices.Contains([]string{"create", "list", "watch", "deletecollection"}, r.verb) || r.sub != "" {
		path += "/name"
	}
	if r.sub != "" {
		path += "/" + r.sub
	}
	query := "?dryRun=All"
	switch r.verb {
	case "get":
		query = ""
	case "list":
		query = "?limit=1"
	case "watch":
		query = "?watch=true&timeoutSeconds=1"
	}
	return user.Send(ctx, method, path+query, strings.NewReader("{}"), r.verb == "patch", true)
}

// withoutRights reports whether every ServiceAccount may make a request, by the roles that all of them have.
func withoutRights(ctx context.Context, user *suite.User, r request) (bool, error) {
	answer, err := r.send(ctx, user)
	return answer.Code != http.StatusForbidden, err
}

// check sends all requests as the stack. A request that is not in the table has to be refused, unless a
// ServiceAccount without any role may make it as well. It returns how many were refused and allowed.
func (i *isolation) check(t *testing.T, stack, powerless *suite.User) (refused, allowed int) {
	t.Helper()
	requests := i.requests(t)
	var mu sync.Mutex
	var workers sync.WaitGroup
	queue := make(chan request)
	for range 8 {
		workers.Go(func() {
			for r := range queue {
				answer, err := r.send(t.Context(), stack)
				if err != nil {
					t.Errorf("%s: %v", r, err)
					continue
				}
				got, want := answer.Code != http.StatusForbidden, i.allowed(r)
				if got && !want {
					anyone, err := withoutRights(t.Context(), powerless, r)
					if err != nil || anyone {
						continue
					}
				}
				if got != want {
					t.Errorf("%s: %s; the table says %t", r, answer, want)
				}
				mu.Lock()
				if got {
					allowed++
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	for _, r := range requests {
		if r.sub == "" || r.verb == "get" || r.verb == "update" || r.verb == "patch" || r.verb == "create" {
			queue <- r
		}
	}
	close(queue)
	workers.Wait()
	return refused, allowed
}

// TestIsolation: a stack's token may do what the table says and nothing else, on every resource: before an upgrade,
// after it, and while another stack is installed ("Allowed Resource Access", "Cluster Stacks", "Namespace Stacks").
func TestIsolation(t *testing.T) {
	t.Parallel()
	for kind, scope := range scopes {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			l, own, other := shared, "isolated-"+strings.ToLower(scope), "elsewhere-"+strings.ToLower(scope)
			group := strings.ToLower(scope) + ".isolated.example.org"
			l.namespace(t, own)
			l.namespace(t, other)
			files := bucketStack(group, scope, "0.1")
			l.install(t, kind, own, "buckets", l.write(t, own, files))
			l.ready(t, kind, own, "buckets", "0.1")
			i := &isolation{l, own, other, kind == clusterInstall, []string{group}}
			stack := suite.TokenUser(t, l.kube, l.admin, own, "buckets")
			powerless := suite.TokenUser(t, l.kube, l.admin, other, "default")
			eventually(t, suite.Timeout, func(ctx context.Context) error { // until the authorizer has the role
				answer, err := request{"list", schema.GroupVersion{Group: group, Version: "v1alpha1"}, "buckets", "", own, true, false}.send(ctx, stack)
				if err == nil && !answer.OK() {
					err = fmt.Errorf("listing buckets: %s", answer)
				}
				return err
			})
			refused, allowed := i.check(t, stack, powerless)
			if refused < 1000 || allowed < 30 {
				t.Errorf("%d requests refused, %d allowed: the test tries too little", refused, allowed)
			}
			answer, err := stack.Send(t.Context(), http.MethodPost, "/api/v1/namespaces/"+own+"/secrets", strings.NewReader(
				`{"metadata": {"name": "token", "annotations": {"kubernetes.io/service-account.name": "default"}},
  "type": "kubernetes.io/service-account-token"}`), false, true)
			if err != nil || answer.Code != http.StatusForbidden {
				t.Errorf("asking for the token of another ServiceAccount: %s, %v", answer, err)
			}
			for question, code := range map[string]int{"get secrets " + own + "/x": 0, "delete buckets." + group + " " + own + "/x": 0,
				"get shoots " + own + "/x": 1, "create deployments " + own + "/": 1} {
				args := append([]string{"access", "explain", "--as-stack", own + "/buckets"}, strings.Fields(question)...)
				if r := suite.Gardenlite(t, l.dir, args...); r.Code != code {
					t.Errorf("%v: exit status %d: %s%s", args, r.Code, r.Stdout, r.Stderr)
				}
			}
			matrix := suite.Gardenlite(t, l.dir, "access", "matrix", "--as-stack", own+"/buckets").OK(t).Shows(
				t, "buckets", "secrets", "configmaps", "events")
			for _, never := range []string{"shoots", "deployments", "roles"} {
				if strings.Contains(matrix.Stdout, "\n"+never) {
					t.Errorf("the matrix has %s: %s", never, matrix.Stdout)
				}
			}
			t.Logf("%d requests refused, %d allowed", refused, allowed)

			l.install(t, namespaceInstall, other, "second", l.write(t, other, bucketStack("second."+group, "Namespaced", "0.1")))
			l.install(t, kind, own, "buckets", l.write(t, own+"-2", files.replace(t, "app.yaml", "version: 0.1", "version: 0.2")))
			i.check(t, stack, powerless) // while both are installed; the stack's role never changes
			l.ready(t, kind, own, "buckets", "0.2")
			l.ready(t, namespaceInstall, other, "second", "0.1")
			i.check(t, stack, powerless)
		})
	}
}

// TestRolesForInstalls: users who may install namespace stacks, and upgrade them, may not install cluster stacks ("Stack
// Install"). They have the role stack-admin of the samples.
func TestRolesForInstalls(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "roles")
	suite.Command(t, "", suite.Kubectl, "apply", "-f", filepath.Join(suite.Root, "manifests", "stacks", "roles.yaml")).OK(t)
	_, err := shared.kube.RbacV1().RoleBindings("roles").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admins"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: "stack-admin"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "alice"}},
	}, created)
	must(t, err)
	alice := suite.CertificateUser(t, shared.dir, "alice")
	version := schema.GroupVersion{Group: "stacks.crossplane.io", Version: "v1alpha1"}
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		answer, err := request{"list", version, namespaceInstall, "", "roles", true, false}.send(ctx, alice)
		if err == nil && !answer.OK() {
			err = fmt.Errorf("listing: %s", answer)
		}
		return err
	})
	for _, verb := range suite.Verbs {
		for resource, may := range map[string]bool{clusterInstall: false, namespaceInstall: verb != "deletecollection"} {
			answer, err := request{verb, version, resource, "", "roles", true, false}.send(t.Context(), alice)
			must(t, err)
			if (answer.Code != http.StatusForbidden) != may {
				t.Errorf("%s %s: %s", verb, resource, answer)
			}
		}
	}
}

// TestStacksWriteNothingOfTheLandscape: a stack has all Secrets and ConfigMaps, but those that are an identity or the
// landscape's own.
func TestStacksWriteNothingOfTheLandscape(t *testing.T) {
	t.Parallel()
	const own, other, project = "bounded", "bounded-other", "bounded-project"
	for _, namespace := range []string{own, other} {
		shared.namespace(t, namespace)
	}
	_, err := shared.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: project, Labels: map[string]string{"project.gardener.cloud/name": "bounded"}}}, created)
	must(t, err)
	shared.install(t, clusterInstall, own, "cluster",
		shared.write(t, "bounded-cluster", bucketStack("cluster.bounded.example.org", "Cluster", "0.1")))
	shared.install(t, namespaceInstall, own, "namespaced", shared.write(t, "bounded-namespaced", bucketStack(
		"namespaced.bounded.example.org", "Namespaced", "0.1").replace(t, "install.yaml", "bucket-controller", "namespaced-controller")))
	shared.ready(t, clusterInstall, own, "cluster", "0.1")
	shared.ready(t, namespaceInstall, own, "namespaced", "0.1")
	_, err = shared.kube.CoreV1().Secrets(project).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "shoot.ssh-keypair", Labels: map[string]string{"gardener.cloud/role": "ssh-keypair"}}}, created)
	must(t, err)
	const bootstrap = `{"type": "bootstrap.kubernetes.io/token", "metadata": {"name": "bootstrap-token-abcdef"}, "stringData": {
  "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
  "description": "A bootstrap token for the Gardenlet \"garden/local\"."}}`
	named := func(name, more string) string { return `{"metadata": {"name": "` + name + `"` + more + `}}` }
	users := map[string]*suite.User{"cluster": nil, "namespaced": nil}
	for name := range users {
		users[name] = suite.TokenUser(t, shared.kube, shared.admin, own, name)
		eventually(t, suite.Timeout, func(ctx context.Context) error { // until the authorizer has the role
			answer, err := users[name].Send(ctx, http.MethodGet, "/api/v1/namespaces/"+own+"/secrets", nil, false, true)
			if err == nil && !answer.OK() {
				err = fmt.Errorf("listing Secrets: %s", answer)
			}
			return err
		})
	}
	for _, test := range []struct {
		user, method, path, body string
		says                     string // empty if it is allowed
	}{
		{"cluster", http.MethodPost, "kube-system/secrets", bootstrap, "namespaces of the landscape"},
		{"cluster", http.MethodPost, own + "/secrets", bootstrap, "no Secret of this type"},
		{"namespaced", http.MethodPost, own + "/secrets", bootstrap, "no Secret of this type"},
		{"cluster", http.MethodPost, "garden/secrets", named("s", ""), "namespaces of the landscape"},
		{"cluster", http.MethodPost, "kube-public/configmaps", named("cluster-info", ""), "namespaces of the landscape"},
		{"cluster", http.MethodPost, "gardener-system-public/configmaps", named("s", ""), "namespaces of the landscape"},
		{"cluster", http.MethodDelete, "kube-system/configmaps/extension-apiserver-authentication", "", "namespaces of the landscape"},
		{"cluster", http.MethodPut, "kube-system/configmaps/extension-apiserver-authentication",
			named("extension-apiserver-authentication", ""), "namespaces of the landscape"},
		{"cluster", http.MethodPut, other + "/configmaps/kube-root-ca.crt", named("kube-root-ca.crt", ""), "for objects of the landscape"},
		{"namespaced", http.MethodPut, own + "/configmaps/kube-root-ca.crt", named("kube-root-ca.crt", ""), "for objects of the landscape"},
		{"cluster", http.MethodPost, project + "/secrets", named("future.ssh-keypair", ""), "for objects of the landscape"},
		{"cluster", http.MethodDelete, project + "/secrets/shoot.ssh-keypair", "", "labels or annotations of Gardener"},
		{"cluster", http.MethodPut, project + "/secrets/shoot.ssh-keypair", named("shoot.ssh-keypair", ""), "labels or annotations of Gardener"},
		{"namespaced", http.MethodPost, own + "/secrets",
			named("s", `, "labels": {"security.gardener.cloud/purpose": "workload-identity-token-requestor"}`), "labels or annotations of Gardener"},

		{"cluster", http.MethodPost, other + "/secrets", named("plain", `, "annotations": {"kubectl.kubernetes.io/x": "y"}`), ""},
		{"cluster", http.MethodPost, other + "/secrets", `{"metadata": {"generateName": "s-"}, "type": "connection.example.org/v1"}`, ""},
		{"cluster", http.MethodPost, project + "/configmaps", named("settings", ""), ""},
		{"cluster", http.MethodPost, other + "/secrets", named("a.ssh-keypair", ""), ""},
		{"namespaced", http.MethodPost, own + "/configmaps", named("plain", ""), ""},
	} {
		answer, err := users[test.user].Send(t.Context(), test.method, "/api/v1/namespaces/"+test.path+"?dryRun=All",
			strings.NewReader(test.body), false, true)
		must(t, err)
		refused := answer.Code == http.StatusForbidden && strings.Contains(answer.Message, test.says)
		if test.says == "" && !answer.OK() || test.says != "" && !refused {
			t.Errorf("%s: %s %s %s: %s; it should say %q", test.user, test.method, test.path, test.body, answer, test.says)
		}
	}

	// Another ServiceAccount with all rights is no stack.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "administrator", Namespace: own}}
	_, err = shared.kube.CoreV1().ServiceAccounts(own).Create(t.Context(), account, created)
	must(t, err)
	_, err = shared.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bounded-administrator"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: "cluster-admin"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: own, Name: account.Name}}}, created)
	must(t, err)
	administrator := suite.TokenUser(t, shared.kube, shared.admin, own, account.Name)
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		answer, err := administrator.Send(ctx, http.MethodPost, "/api/v1/namespaces/kube-system/secrets?dryRun=All",
			strings.NewReader(bootstrap), false, true)
		if err == nil && !answer.OK() {
			err = fmt.Errorf("the administrator's bootstrap token: %s", answer)
		}
		return err
	})
}
