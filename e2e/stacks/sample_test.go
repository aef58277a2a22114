package stacks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

var (
	wordPressInstances = schema.GroupVersionResource{Group: "wordpress.example.org", Version: "v1alpha1", Resource: "wordpressinstances"}
	mysqlInstances     = schema.GroupVersionResource{Group: "database.example.org", Version: "v1alpha1", Resource: "mysqlinstances"}
	mysqlServers       = mysqlInstances.GroupVersion().WithResource("mysqlservers")
)

// samples are the sample stacks in a landscape, with their controllers as processes.
type samples struct {
	*landscape
	manifests, programs string
}

func newSamples(t *testing.T) *samples {
	t.Helper()
	s := &samples{shared, filepath.Join(suite.Root, "manifests", "stacks"), t.TempDir()}
	suite.Command(t, "", "go", "-C", suite.Root, "build", "-o", s.programs, "./examples/stacks/mysql", "./examples/stacks/wordpress").OK(t)
	return s
}

func (s *samples) installs(t *testing.T, name, program, namespace, says string) {
	t.Helper()
	suite.Gardenlite(t, s.dir, "stack", "install", filepath.Join(s.manifests, name), "-n", namespace,
		"--run", filepath.Join(s.programs, program)).OK(t).Shows(t, says)
}

func (s *samples) apply(t *testing.T, file string) {
	t.Helper()
	suite.Command(t, "", suite.Kubectl, "apply", "-f", filepath.Join(s.manifests, file)).OK(t)
}

// serves waits until the site of an environment is served by a version of the stack, and returns its page.
func (s *samples) serves(t *testing.T, namespace, version string, has ...string) (page string) {
	t.Helper()
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		site, err := s.dyn.Resource(wordPressInstances).Namespace(namespace).Get(ctx, "blog", metav1.GetOptions{})
		if err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(site.Object, "status", "phase")
		address, _, _ := unstructured.NestedString(site.Object, "status", "address")
		message, _, _ := unstructured.NestedString(site.Object, "status", "message")
		if phase != "Ready" || message != "served by version "+version {
			return fmt.Errorf("the site in %s is %v", namespace, site.Object["status"])
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		data, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		page = string(data)
		for _, word := range append(has, "WordPress stack "+version) {
			if err == nil && !strings.Contains(page, word) {
				err = fmt.Errorf("the page has no %q: %s %s", word, answer.Status, page)
			}
		}
		return err
	})
	return page
}

// claim returns the database of an environment's site: the UID of its claim, and the password in its Secret.
func (s *samples) claim(t *testing.T, namespace string) (types.UID, string) {
	t.Helper()
	claim, err := s.dyn.Resource(mysqlInstances).Namespace(namespace).Get(t.Context(), "blog", metav1.GetOptions{})
	must(t, err)
	secret, err := s.kube.CoreV1().Secrets(namespace).Get(t.Context(), "blog", metav1.GetOptions{})
	must(t, err)
	return claim.GetUID(), string(secret.Data["password"])
}

// TestStackSample: two environments share the MySQL stack, with default classes of their own, and have the WordPress stack in
// two versions. Upgrades and downgrades keep sites and databases ("Environments", "Multiple Versions").
func TestStackSample(t *testing.T) {
	t.Parallel()
	s := newSamples(t)
	s.installs(t, "mysql", "mysql", "infra", "infra/mysql is ready: MySQL 0.1")
	s.installs(t, "wordpress-0.1", "wordpress", "dev", "WordPress 0.1")
	s.installs(t, "wordpress-0.2", "wordpress", "prod", "WordPress 0.2")
	s.apply(t, "demo")
	s.serves(t, "dev", "0.1", "Blog in development", "blog.dev.mysql.example.org:3306")
	s.serves(t, "prod", "0.2", "<h1>Blog</h1>", "Theme: dark", "blog.prod.mysql.example.org:3306")
	for namespace, class := range map[string]string{"dev": "small", "prod": "large"} {
		server, err := s.dyn.Resource(mysqlServers).Namespace(namespace).Get(t.Context(), "blog", metav1.GetOptions{})
		must(t, err)
		if got, _, _ := unstructured.NestedString(server.Object, "spec", "classRef", "name"); got != class {
			t.Errorf("the server in %s has the class %s", namespace, got)
		}
	}

	uid, password := s.claim(t, "dev")
	theme := []byte(`{"spec":{"theme":"light"}}`)
	_, err := s.dyn.Resource(wordPressInstances).Namespace("dev").Patch(t.Context(), "blog", types.MergePatchType,
		theme, metav1.PatchOptions{})
	must(t, err)
	s.installs(t, "wordpress-0.2", "wordpress", "dev", "WordPress 0.2")
	s.serves(t, "dev", "0.2", "Theme: light")
	s.installs(t, "wordpress-0.1", "wordpress", "dev", "WordPress 0.1")
	if page := s.serves(t, "dev", "0.1", "Blog in development"); strings.Contains(page, "Theme") {
		t.Errorf("version 0.1 has themes: %s", page)
	}
	s.serves(t, "prod", "0.2", "Theme: dark")
	if uidNow, passwordNow := s.claim(t, "dev"); uid != uidNow || password != passwordNow || password == "" {
		t.Errorf("the database in dev is another one: %s, before %s", uidNow, uid)
	}

	must(t, s.dyn.Resource(wordPressInstances).Namespace("dev").Delete(t.Context(), "blog", metav1.DeleteOptions{}))
	s.exists(t, []place{{mysqlInstances, "dev", "blog"}, {mysqlServers, "dev", "blog"},
		{corev1.SchemeGroupVersion.WithResource("secrets"), "dev", "blog"}}, false)
	s.serves(t, "prod", "0.2")
}

// TestSampleRoles: administrators of an environment install namespace stacks, operators cluster stacks as well ("Stack Install").
func TestSampleRoles(t *testing.T) {
	t.Parallel()
	s := &samples{landscape: shared, manifests: filepath.Join(suite.Root, "manifests", "stacks")}
	s.apply(t, "roles.yaml")
	s.namespace(t, "sample-roles")
	s.namespace(t, "sample-roles-other")
	for _, role := range []string{"stack-admin", "stack-operator"} {
		suite.Command(t, "", suite.Kubectl, "create", "rolebinding", role, "-n", "sample-roles", "--clusterrole", role, "--user", role).OK(t)
	}
	for _, test := range []struct {
		user, verb, resource, namespace string
		want                            bool
	}{
		{"stack-admin", "create", namespaceInstall, "sample-roles", true},
		{"stack-admin", "delete", namespaceInstall, "sample-roles", true},
		{"stack-admin", "create", namespaceInstall, "sample-roles-other", false},
		{"stack-admin", "create", clusterInstall, "sample-roles", false},
		{"stack-admin", "get", "stacks", "sample-roles", true},
		{"stack-admin", "create", "stacks", "sample-roles", false},
		{"stack-operator", "create", clusterInstall, "sample-roles", true},
		{"stack-operator", "create", namespaceInstall, "sample-roles", true},
		{"stack-operator", "update", "stacks", "sample-roles", false},
	} {
		eventually(t, suite.Timeout, func(ctx context.Context) error {
			review, err := s.kube.AuthorizationV1().SubjectAccessReviews().Create(
				ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: test.user,
					ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: test.verb, Group: "stacks.crossplane.io",
						Resource: test.resource, Namespace: test.namespace},
				}}, created)
			if err == nil && review.Status.Allowed != test.want {
				err = fmt.Errorf("%+v: allowed %t", test, review.Status.Allowed)
			}
			return err
		})
	}
}
