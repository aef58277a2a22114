package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	"k8s.io/client-go/util/retry"
)

// as returns a client of the garden that impersonates a user.
func (l *landscape) as(t *testing.T, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(l.config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return clientOf(t, config)
}

// certificate returns the client certificate of a kubeconfig's first user.
func certificate(t *testing.T, kubeconfig []byte) *x509.Certificate {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	block, _ := pem.Decode(config.CertData)
	if block == nil {
		t.Fatal("there is no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return cert
}

// TestShootKubeconfigs tests the kubeconfigs of a Shoot against GEP-16. The Shoot has no workers, so that it rotates
// quickly.
func TestShootKubeconfigs(t *testing.T) {
	t.Parallel()
	audit := filepath.Join(t.TempDir(), "audit.log")
	l := newLandscape(t, "--shoot-admin-kubeconfig-max-expiration", "2h", "--audit-log", audit)
	asleep := l.newShoot(t, "asleep", func(spec map[string]any) { spec["hibernation"] = map[string]any{"enabled": true} })
	homeless := l.newShoot(t, "homeless", func(spec map[string]any) {
		spec["tolerations"] = []any{}
		spec["seedSelector"] = map[string]any{"matchLabels": map[string]any{"no": "such"}}
	})
	s := l.newShoot(t, "gep16", func(spec map[string]any) {
		delete(spec, "credentialsBindingName")
		delete(spec["maintenance"].(map[string]any), "autoRotation")
		delete(spec["provider"].(map[string]any), "workers")
		spec["networking"] = map[string]any{"services": "10.12.0.0/16"}
	})
	obj := s.waitForSucceeded(t)
	l.member(t, "alice@example.com", "admin")
	l.member(t, "victor", "viewer")

	t.Run("names the user", func(t *testing.T) { s.namesTheUser(t, audit) })
	t.Run("viewers read all but secrets", func(t *testing.T) { s.viewersRead(t) })
	t.Run("expiration", func(t *testing.T) { s.expires(t) })
	t.Run("one cluster and context for each address", func(t *testing.T) { s.hasAllAddresses(t, obj.Object) })
	t.Run("who may", func(t *testing.T) { s.whoMay(t) })
	t.Run("RBAC on the subresource alone decides", func(t *testing.T) { s.rbacDecides(t) })
	t.Run("service accounts", func(t *testing.T) { s.serviceAccount(t) })
	t.Run("impersonation", func(t *testing.T) { s.impersonation(t) })
	t.Run("odd names", func(t *testing.T) { s.oddNames(t) })
	t.Run("requests that are wrong", func(t *testing.T) { s.wrongRequests(t) })
	t.Run("Shoots without one", func(t *testing.T) { l.cannotBe(t, asleep, homeless) })
	t.Run("many at once", func(t *testing.T) { s.manyAtOnce(t) })
	t.Run("bodies that do not come", func(t *testing.T) { s.announcedBodies(t) })
	t.Run("verbs", func(t *testing.T) {
		for _, verb := range []string{"GET", "PUT", "PATCH", "DELETE"} {
			err := l.kube.CoreV1().RESTClient().Verb(verb).AbsPath("/apis/core.gardener.cloud/v1beta1/namespaces", shootNamespace,
				"shoots", s.name, "adminkubeconfig").
				SetHeader("Content-Type", "application/merge-patch+json").Body([]byte(`{}`)).Do(t.Context()).Error()
			if !apierrors.IsMethodNotSupported(err) {
				t.Errorf("%s: %v", verb, err)
			}
		}
	})
	last := s.rotatesAuthorities(t)
	t.Run("is nowhere else", func(t *testing.T) { s.isNowhereElse(t, audit) })
	s.delete(t)
	s.waitGone(t)
	s.endsWithShoot(t, last)
	l.checkNothingForbidden(t)
}

// member makes a user a member of the project, and waits until that is effective.
func (l *landscape) member(t *testing.T, user, role string) {
	t.Helper()
	// The controller manager writes the Project as well.
	must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		project, err := l.at("projects", "").Get(t.Context(), "dev", metav1.GetOptions{})
		if err != nil {
			return err
		}
		members, _ := project.Object["spec"].(map[string]any)["members"].([]any)
		project.Object["spec"].(map[string]any)["members"] = append(
			members, map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user, "role": role})
		_, err = l.at("projects", "").Update(t.Context(), project, metav1.UpdateOptions{})
		return err
	}))
	eventually(t, waitTimeout, func(context.Context) error {
		return l.as(t, user).CoreV1().RESTClient().Get().AbsPath("/apis/core.gardener.cloud/v1beta1/namespaces",
			shootNamespace, "shoots").Do(t.Context()).Error()
	})
}

func (s *shoot) namesTheUser(t *testing.T, audit string) {
	data, err := s.kubeconfig(t.Context(), s.l.as(t, "alice@example.com", "system:authenticated"), "Admin", 3600)
	must(t, err)
	cert := certificate(t, data)
	if cert.Subject.CommonName != "alice@example.com" || !slices.Equal(cert.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("the subject is %s", cert.Subject)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	must(t, err)
	client := clientOf(t, config)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, created)
	must(t, err)
	if review.Status.UserInfo.Username != "alice@example.com" {
		t.Errorf("the shoot says that the user is %+v", review.Status.UserInfo)
	}
	_, err = client.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hers"}}, created)
	must(t, err)
	eventually(t, waitTimeout, func(context.Context) error {
		log, err := os.ReadFile(audit + "." + s.id())
		if err == nil && !bytes.Contains(log, []byte(`"username":"alice@example.com"`)) {
			err = errors.New("the shoot's audit log does not name her")
		}
		return err
	})
}

// viewersRead checks what a viewer may do in the Shoot, in which the viewer's name of the garden is an administrator.
func (s *shoot) viewersRead(t *testing.T) {
	admin, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 3600)
	must(t, err)
	adminConfig, err := clientcmd.RESTConfigFromKubeConfig(admin)
	must(t, err)
	_, err = clientOf(t, adminConfig).RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "victor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "victor"}}}, created)
	must(t, err)
	data, err := s.kubeconfig(t.Context(), s.l.as(t, "victor", "system:authenticated"), "Viewer", 3600)
	must(t, err)
	if cert := certificate(t, data); cert.Subject.CommonName != "gardener.cloud:viewer:victor" ||
		!slices.Equal(cert.Subject.Organization, []string{"gardener.cloud:project:viewers"}) {
		t.Errorf("the subject is %s", cert.Subject)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	must(t, err)
	client := clientOf(t, config)
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer lists Secrets: %v", err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, created); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer writes: %v", err)
	}
}

func (s *shoot) expires(t *testing.T) {
	for seconds, wanted := range map[int]time.Duration{600: 10 * time.Minute, 3600: time.Hour, 7200: 2 * time.Hour, 86400: 2 * time.Hour} {
		data, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", seconds)
		must(t, err)
		if left := time.Until(certificate(t, data).NotAfter); left > wanted || left < wanted-time.Minute {
			t.Errorf("asked for %d s, it is valid for %s, not %s", seconds, left, wanted)
		}
	}
	for _, seconds := range []int{599, 0, -1} {
		if _, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", seconds); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "spec.expirationSeconds") || !strings.Contains(err.Error(), "600") {
			t.Errorf("%d seconds: %v", seconds, err)
		}
	}
}

func (s *shoot) hasAllAddresses(t *testing.T, obj map[string]any) {
	data, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 3600)
	must(t, err)
	config, err := clientcmd.Load(data)
	must(t, err)
	first := ""
	for _, a := range obj["status"].(map[string]any)["advertisedAddresses"].([]any) {
		name, url := a.(map[string]any)["name"].(string), a.(map[string]any)["url"].(string)
		if name == "service-account-issuer" {
			continue
		}
		context := shootNamespace + "--" + s.name + "-" + name
		if first == "" {
			first = context
		}
		if config.Contexts[context] == nil || config.Clusters[config.Contexts[context].Cluster].Server != url {
			t.Errorf("no context %s for %s in %v", context, url, config.Contexts)
		}
	}
	if config.CurrentContext != first || len(config.Contexts) != len(config.Clusters) || len(config.Contexts) == 0 {
		t.Errorf("the current context is %s, not %s; %d contexts, %d clusters", config.CurrentContext, first,
			len(config.Contexts), len(config.Clusters))
	}
}

func (s *shoot) whoMay(t *testing.T) {
	gardenlet, _ := gardenletConfig(t, s.l.seeds["local"])
	for name, test := range map[string]struct {
		who       kubernetes.Interface
		kind      string
		forbidden bool
	}{
		"an admin":               {s.l.as(t, "alice@example.com", "system:authenticated"), "Admin", false},
		"a viewer":               {s.l.as(t, "victor", "system:authenticated"), "Admin", true},
		"a viewer, to view":      {s.l.as(t, "victor", "system:authenticated"), "Viewer", false},
		"a stranger":             {s.l.as(t, "stranger", "system:authenticated"), "Admin", true},
		"a stranger, to view":    {s.l.as(t, "stranger", "system:authenticated"), "Viewer", true},
		"its gardenlet":          {clientOf(t, gardenlet), "Admin", true},
		"its gardenlet, to view": {clientOf(t, gardenlet), "Viewer", true},
		"an extension": {s.l.as(t, "system:serviceaccount:seed-local:extension-x", "system:serviceaccounts",
			"system:serviceaccounts:seed-local", "system:authenticated"), "Admin", true},
		"a service account of hers": {
			s.l.as(t, "system:serviceaccount:garden-dev:robot", "system:serviceaccounts", "system:authenticated"), "Admin", true},
	} {
		if _, err := s.kubeconfig(t.Context(), test.who, test.kind, 3600); test.forbidden != apierrors.IsForbidden(err) ||
			!test.forbidden && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// manyAtOnce: an ordinary user, whose requests are subject to priority and fairness, gets all kubeconfigs, each with a key
// of its own.
func (s *shoot) manyAtOnce(t *testing.T) {
	config := rest.CopyConfig(s.l.config(t))
	config.Timeout = 5 * time.Minute // for all attempts together: keys take as long as the machine needs for them
	config.Impersonate = rest.ImpersonationConfig{UserName: "alice@example.com", Groups: []string{"system:authenticated"}}
	garden := clientOf(t, config)
	var calls sync.WaitGroup
	errs := make(chan error, 100)
	keys := sync.Map{}
	for range 100 {
		calls.Go(func() {
			data, err := s.kubeconfig(t.Context(), garden, "Admin", 3600)
			if err == nil {
				config, errConfig := clientcmd.RESTConfigFromKubeConfig(data)
				err = errConfig
				if _, twice := keys.LoadOrStore(string(config.KeyData), true); twice {
					err = fmt.Errorf("two calls have one key")
				}
			}
			errs <- err
		})
	}
	calls.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// cannotBe expects errors for kubeconfigs of Shoots without an address: one was never awake, and the other one has
// no seed.
func (l *landscape) cannotBe(t *testing.T, asleep, homeless *shoot) {
	asleep.waitForSucceeded(t)
	missing := &shoot{l: l, name: "missing"}
	for _, s := range []*shoot{asleep, homeless} {
		for _, kind := range []string{"Admin", "Viewer"} {
			_, err := s.kubeconfig(t.Context(), l.kube, kind, 3600)
			if !apierrors.IsInvalid(err) {
				t.Errorf("%s for %s: %v", kind, s.name, err)
				continue
			}
			for _, says := range []string{s.name, "status.advertisedAddresses", "try again when it is ready"} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%s for %s does not say %q: %v", kind, s.name, says, err)
				}
			}
		}
	}
	if _, err := missing.kubeconfig(t.Context(), l.kube, "Admin", 3600); !apierrors.IsNotFound(err) ||
		!strings.Contains(err.Error(), `"missing" not found`) {
		t.Errorf("a Shoot that is not there: %v", err)
	}
}
