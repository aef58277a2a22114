package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// checkInSeed expects the extension's namespace in the seed, and its access to the garden.
func (l *landscape) checkInSeed(t *testing.T, registration, installation string) {
	t.Helper()
	namespace, err := l.seeds["local"].CoreV1().Namespaces().Get(t.Context(), "extension-"+installation, metav1.GetOptions{})
	must(t, err)
	for label, want := range map[string]string{
		"gardener.cloud/role": "extension", "controllerregistration.core.gardener.cloud/name": registration,
	} {
		if got := namespace.Labels[label]; got != want {
			t.Errorf("the namespace of %s has %s=%q, expected %q", registration, label, got, want)
		}
	}
	client, err := kubernetes.NewForConfig(l.extensionConfig(t, installation))
	must(t, err)
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, created)
	must(t, err)
	if want := "system:serviceaccount:seed-local:extension-" + installation; who.Status.UserInfo.Username != want {
		t.Errorf("the extension is %s, expected %s", who.Status.UserInfo.Username, want)
	}
}

// extensionConfig returns an extension's client configuration for the garden, with its token from the seed.
func (l *landscape) extensionConfig(t *testing.T, installation string) *rest.Config {
	t.Helper()
	var secret *corev1.Secret
	eventually(t, waitTimeout, func(ctx context.Context) (err error) {
		secret, err = l.seeds["local"].CoreV1().Secrets("extension-"+installation).Get(ctx, "garden-access-extension", metav1.GetOptions{})
		if err == nil && len(secret.Data["token"]) == 0 {
			err = fmt.Errorf("there is no token in it")
		}
		return err
	})
	config := rest.AnonymousClientConfig(l.admin)
	config.BearerToken = string(secret.Data["token"])
	return config
}

// checkIdentities sends requests of an extension for its own objects, for those of another extension, and for those
// of another seed.
func (l *landscape) checkIdentities(t *testing.T, installation, another string) {
	t.Helper()
	const other = "e2e-elsewhere"
	_, err := l.kube.CoreV1().Namespaces().Create(
		t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-" + other}}, created)
	must(t, err)
	_, err = l.kube.CoreV1().Secrets("seed-"+other).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, created)
	must(t, err)
	user := suite.NewUser(t, "extension-"+installation, l.extensionConfig(t, installation))
	const core = "/apis/core.gardener.cloud/v1beta1"
	for _, test := range []struct {
		method, path string
		allowed      bool
	}{
		{"GET", core + "/seeds/local", true},
		{"GET", core + "/controllerinstallations/" + installation, true},
		{"GET", core + "/controllerregistrations/provider-local", true},
		{"GET", core + "/cloudprofiles/local", true},
		{"GET", core + "/namespaces/garden-dev/shoots/needy", true},
		{"GET", "/api/v1/namespaces/seed-" + other + "/secrets/theirs", false},
		{"GET", "/api/v1/namespaces/seed-" + other + "/secrets", false},
		{"GET", "/apis/coordination.k8s.io/v1/namespaces/seed-" + other + "/leases/theirs", false},
		{"GET", "/apis/coordination.k8s.io/v1/namespaces/gardener-system-seed-lease/leases/local", false},
		{"GET", "/api/v1/namespaces/seed-local/serviceaccounts/extension-" + another, false},
		{"GET", "/api/v1/secrets", false},
		{"DELETE", core + "/namespaces/garden-dev/shoots/needy?dryRun=All", false},
		{"DELETE", core + "/seeds/local?dryRun=All", false},
		{"DELETE", core + "/controllerinstallations/" + another + "?dryRun=All", false},
	} {
		a, err := user.Send(t.Context(), test.method, test.path, nil, false, false)
		must(t, err)
		if test.allowed && !a.OK() || !test.allowed && a.Code != http.StatusForbidden {
			t.Errorf("the extension: %s %s: %s, expected %t", test.method, test.path, a, test.allowed)
		}
	}
}

// checkGone waits until nothing is left of an installation, in the seed and in the garden.
func (l *landscape) checkGone(t *testing.T, installation string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := l.seeds["local"].CoreV1().Namespaces().Get(ctx, "extension-"+installation, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace of %s in the seed is not gone: %v", installation, err)
		}
		_, err = l.kube.CoreV1().ServiceAccounts("seed-local").Get(ctx, "extension-"+installation, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the ServiceAccount of %s in the garden is not gone: %v", installation, err)
		}
		return nil
	})
}
