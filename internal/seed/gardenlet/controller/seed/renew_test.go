package seed

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	tokenRenewal    = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	identityRenewal = "workloadidentity.security.gardener.cloud/token-renew-timestamp"
)

func TestRenewal(t *testing.T) {
	type annotations = map[string]string
	all := annotations{"garden": tokenRenewal, "shoot": tokenRenewal, "identity": identityRenewal}
	for asked, want := range map[string]annotations{
		"renew-kubeconfig": {"gardenlet-kubeconfig": "gardener.cloud/operation", "garden": tokenRenewal,
			"shoot": tokenRenewal, "identity": identityRenewal},
		"renew-garden-access-secrets":    {"shoot": tokenRenewal, "identity": identityRenewal},
		"renew-workload-identity-tokens": {"garden": tokenRenewal, "shoot": tokenRenewal},
		"unknown-operation":              all,
	} {
		t.Run(asked, func(t *testing.T) {
			seed := someSeed()
			seed.Annotations = annotations{"gardener.cloud/operation": asked}
			w := newWorld(t, seed)
			for name, labels := range map[string]annotations{
				"gardenlet-kubeconfig": nil,
				"garden":               {"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "garden"},
				"shoot":                {"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
				"identity":             {"security.gardener.cloud/purpose": "workload-identity-token-requestor"},
			} {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: labels, Annotations: annotations{}}}
				if renewal := all[name]; renewal != "" {
					secret.Annotations[renewal] = "2031-01-01T00:00:00Z"
				}
				w.must(w.seed.Create(t.Context(), secret))
			}
			w.after(time.Hour)
			secrets := &corev1.SecretList{}
			w.must(w.seed.List(t.Context(), secrets, client.InNamespace("garden")))
			for _, secret := range secrets.Items {
				for annotation, value := range secret.Annotations {
					if want[secret.Name] != annotation || annotation == "gardener.cloud/operation" && value != "renew" {
						t.Errorf("Secret %s has %s=%s", secret.Name, annotation, value)
					}
				}
				if want[secret.Name] != "" && len(secret.Annotations) == 0 {
					t.Errorf("Secret %s has not %s", secret.Name, want[secret.Name])
				}
			}
			if left := w.read().Annotations["gardener.cloud/operation"]; (left == "") != (asked != "unknown-operation") {
				t.Errorf("the operation is now %q", left)
			}
		})
	}
}

func TestRenewalWithoutAKubeconfig(t *testing.T) {
	seed := someSeed()
	seed.Annotations = map[string]string{"gardener.cloud/operation": "renew-kubeconfig"}
	w := newWorld(t, seed)
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "garden/gardenlet-kubeconfig") {
		t.Errorf("the error is %v", err)
	}
	if w.read().Annotations["gardener.cloud/operation"] == "" {
		t.Error("what was asked for is forgotten")
	}
}
