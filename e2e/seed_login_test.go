package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// seedLogin: the Secret that gardenctl reads for a seed has a kubeconfig for the seed's administrator. Only
// administrators of the garden can read it, and it is deleted with the Seed.
func (l *landscape) seedLogin(t *testing.T) {
	secrets := l.kube.CoreV1().Secrets("garden")
	for _, seed := range l.names {
		var secret *corev1.Secret
		eventually(t, time.Minute, func(ctx context.Context) (err error) {
			secret, err = secrets.Get(ctx, seed+".login", metav1.GetOptions{})
			return err
		})
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
		must(t, err)
		_, err = clientOf(t, config).CoreV1().Namespaces().Create(
			t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "by-login"}}, created)
		must(t, err)
		if _, err := l.seeds[seed].CoreV1().Namespaces().Get(t.Context(), "by-login", metav1.GetOptions{}); err != nil {
			t.Errorf("the kubeconfig is for another cluster than the seed %s: %v", seed, err)
		}
	}

	own, _ := gardenletConfig(t, l.seeds["local"])
	other, _ := gardenletConfig(t, l.seeds["local-2"])
	for name, who := range map[string]kubernetes.Interface{
		"its gardenlet":     clientOf(t, own),
		"another gardenlet": clientOf(t, other),
		"an extension": l.as(t, "system:serviceaccount:seed-local:extension-x", "system:serviceaccounts",
			"system:serviceaccounts:seed-local", "system:authenticated"),
		"an authenticated user": l.as(t, "stranger", "system:authenticated"),
	} {
		secrets := who.CoreV1().Secrets("garden")
		_, get := secrets.Get(t.Context(), "local.login", metav1.GetOptions{})
		_, list := secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=local.login"})
		_, create := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "local-3.login"}}, created)
		_, update := secrets.Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "local.login"}}, metav1.UpdateOptions{})
		remove := secrets.Delete(t.Context(), "local.login", metav1.DeleteOptions{})
		for verb, err := range map[string]error{"get": get, "list": list, "create": create, "update": update, "delete": remove} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s, %s: %v", name, verb, err)
			}
		}
	}

	seed, err := l.at("seeds", "").Get(t.Context(), "local-2", metav1.GetOptions{})
	must(t, err)
	l.delete(t, "seeds", seed)
	eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := secrets.Get(ctx, "local-2.login", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the Secret of a Seed that was deleted is there still"), err)
	})
}

// readsAll: with --seed-authorizer-reads=all, a gardenlet lists what belongs to other seeds, as the table of the document says.
func (l *landscape) readsAll(t *testing.T) {
	config, _ := gardenletConfig(t, l.seeds["local"])
	rest := clientOf(t, config).CoreV1().RESTClient()
	for _, path := range []string{"core.gardener.cloud/v1beta1/shoots", "core.gardener.cloud/v1beta1/controllerinstallations",
		"operations.gardener.cloud/v1alpha1/bastions", "seedmanagement.gardener.cloud/v1alpha1/managedseeds",
		"seedmanagement.gardener.cloud/v1alpha1/gardenlets"} {
		if err := rest.Get().AbsPath("/apis/" + path).Do(t.Context()).Error(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	check := gardenlite(t, l.dir, "access", "check")
	if check.Code != 0 || !strings.Contains(check.Stdout, "may read these objects of all seeds here") {
		t.Errorf("access check: %d %s%s", check.Code, check.Stdout, check.Stderr)
	}
}
