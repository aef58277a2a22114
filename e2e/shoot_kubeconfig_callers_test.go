package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// knows expects that a kubeconfig identifies its user to the Shoot's API server by this name, and by no group of the
// garden.
func (s *shoot) knows(t *testing.T, kubeconfig []byte, name string) {
	t.Helper()
	if cert := certificate(t, kubeconfig); cert.Subject.CommonName != name ||
		!slices.Equal(cert.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("the subject for %q is %s", name, cert.Subject)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	review, err := clientOf(t, config).AuthenticationV1().SelfSubjectReviews().Create(
		t.Context(), &authenticationv1.SelfSubjectReview{}, created)
	if err != nil || review.Status.UserInfo.Username != name || !slices.Contains(review.Status.UserInfo.Groups, "system:masters") {
		t.Errorf("the shoot says that %q is %v: %v", name, review, err)
	}
}

// may grants a subject verbs for a resource in the project.
func (l *landscape) may(t *testing.T, subject rbacv1.Subject, resource string, verbs ...string) {
	t.Helper()
	name := strings.ReplaceAll(subject.Name+"-"+resource, "/", "-")
	_, err := l.kube.RbacV1().Roles(shootNamespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"core.gardener.cloud"}, Resources: []string{resource}, Verbs: verbs}}}, created)
	must(t, err)
	_, err = l.kube.RbacV1().RoleBindings(shootNamespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, created)
	must(t, err)
}

// gets waits until a right is effective, and returns the kubeconfig.
func (s *shoot) gets(t *testing.T, who kubernetes.Interface, kind string) (data []byte) {
	t.Helper()
	eventually(t, 2*time.Minute, func(ctx context.Context) (err error) {
		data, err = s.kubeconfig(ctx, who, kind, 3600)
		return err
	})
	return data
}

// refused expects that a user gets no kubeconfig, and that the error names the missing right.
func (s *shoot) refused(t *testing.T, who kubernetes.Interface, kind string) {
	t.Helper()
	_, err := s.kubeconfig(t.Context(), who, kind, 3600)
	if says := `cannot create resource "shoots/` + strings.ToLower(kind) + `kubeconfig" in API group "core.gardener.cloud" ` +
		`in the namespace "` + shootNamespace + `"`; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v; it should say %q", kind, err, says)
	}
}

func (s *shoot) rbacDecides(t *testing.T) {
	for name, resource := range map[string]string{"only-admins": "shoots/adminkubeconfig", "only-viewers": "shoots/viewerkubeconfig"} {
		s.l.may(t, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}, resource, "create")
	}
	s.l.may(t, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "all-but"}, "shoots", "*")
	get := func(user string) error {
		return s.l.as(t, user, "system:authenticated").CoreV1().RESTClient().Get().AbsPath(
			"/apis/core.gardener.cloud/v1beta1/namespaces", shootNamespace, "shoots", s.name).Do(t.Context()).Error()
	}
	eventually(t, 2*time.Minute, func(context.Context) error { return get("all-but") })
	all := s.l.as(t, "all-but", "system:authenticated")
	s.refused(t, all, "Admin")
	s.refused(t, all, "Viewer")

	admins, viewers := s.l.as(t, "only-admins", "system:authenticated"), s.l.as(t, "only-viewers", "system:authenticated")
	s.knows(t, s.gets(t, admins, "Admin"), "only-admins")
	s.refused(t, admins, "Viewer")
	if cert := certificate(t, s.gets(t, viewers, "Viewer")); !slices.Equal(
		cert.Subject.Organization, []string{"gardener.cloud:project:viewers"}) {
		t.Errorf("a viewer's subject is %s", cert.Subject)
	}
	s.refused(t, viewers, "Admin")
	if err := get("only-admins"); !apierrors.IsForbidden(err) {
		t.Errorf("who may have kubeconfigs reads the Shoot: %v", err)
	}
}

// serviceAccount requests kubeconfigs with the token of a service account of the project, as a pipeline does.
func (s *shoot) serviceAccount(t *testing.T) {
	accounts := s.l.kube.CoreV1().ServiceAccounts(shootNamespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "pipeline"}}, created)
	must(t, err)
	token, err := accounts.CreateToken(t.Context(), "pipeline", &authenticationv1.TokenRequest{}, created)
	must(t, err)
	config := rest.AnonymousClientConfig(s.l.config(t))
	config.BearerToken = token.Status.Token
	pipeline := clientOf(t, config)
	s.refused(t, pipeline, "Admin")
	s.l.may(t, rbacv1.Subject{Kind: "ServiceAccount", Namespace: shootNamespace, Name: "pipeline"}, "shoots/adminkubeconfig", "create")
	s.knows(t, s.gets(t, pipeline, "Admin"), "system:serviceaccount:"+shootNamespace+":pipeline")
	config.BearerToken = ""
	if _, err := s.kubeconfig(t.Context(), clientOf(t, config), "Admin", 3600); !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		t.Errorf("without credentials: %v", err)
	}
}

// impersonation: the certificate is for the user that the garden authenticates. Impersonation needs the right to it.
func (s *shoot) impersonation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alice")
	must(t, os.WriteFile(file, []byte(gardenlite(t, s.l.dir, "kubeconfig", "--user", "alice@example.com").OK(t).Stdout), 0o600))
	config, err := clientcmd.BuildConfigFromFlags("", file)
	must(t, err)
	s.knows(t, s.gets(t, clientOf(t, config), "Admin"), "alice@example.com")
	config.Impersonate = rest.ImpersonationConfig{UserName: "bob"}
	if _, err := s.kubeconfig(t.Context(), clientOf(t, config), "Admin", 3600); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "impersonate") {
		t.Errorf("she takes another name: %v", err)
	}

	data := s.gets(t, s.l.as(t, "carol", "system:masters"), "Admin") // the administrator, impersonating another user
	s.knows(t, data, "carol")
	must(t, os.WriteFile(file, data, 0o600))
	command(t, "", kubectlBinary, "--kubeconfig", file, "--cache-dir", t.TempDir(), "auth", "whoami").OK(t).Shows(t, "carol", "system:masters")
}

func (s *shoot) oddNames(t *testing.T) {
	for _, name := range []string{"Жанна д'Арк", "漢字🌱", "a:b:c", "system:serviceaccount:not:one",
		"oidc:https://example.com#ü", "a\"b\\c", strings.Repeat("x", 256), "with,comma=and+plus"} {
		data, err := s.kubeconfig(t.Context(), s.l.as(t, name, "system:masters", ""), "Admin", 3600) // one group is empty
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		s.knows(t, data, name)
	}
	_, err := s.kubeconfig(t.Context(), s.l.as(t, strings.Repeat("x", 5000), "system:masters"), "Admin", 3600)
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "your user name has 5000 bytes") {
		t.Errorf("a name that is too long: %v", err)
	}
}

func (s *shoot) wrongRequests(t *testing.T) {
	for name, test := range map[string]struct{ body, says string }{
		"no JSON":      {`{`, ""},
		"another kind": {`{"apiVersion":"v1","kind":"Secret"}`, ""},
		"a viewer's to admin": {`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"ViewerKubeconfigRequest"}`,
			"AdminKubeconfigRequest"},
		"expiration that is a word": {`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"AdminKubeconfigRequest",` +
			`"spec":{"expirationSeconds":"soon"}}`, "expirationSeconds"},
	} {
		err := s.l.kube.CoreV1().RESTClient().Post().AbsPath("/apis/core.gardener.cloud/v1beta1/namespaces", shootNamespace,
			"shoots", s.name, "adminkubeconfig").
			SetHeader("Content-Type", "application/json").Body([]byte(test.body)).Do(t.Context()).Error()
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v; it should be a bad request that says %q", name, err, test.says)
		}
	}
}
