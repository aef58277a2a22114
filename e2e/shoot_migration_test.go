package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// moveTo requests that the control plane is moved to another seed.
func (s *shoot) moveTo(t *testing.T, seed string) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		obj := s.must(t)
		must(t, unstructured.SetNestedField(obj.Object, seed, "spec", "seedName"))
		_, err := s.l.at("shoots", shootNamespace).Update(t.Context(), obj, metav1.UpdateOptions{}, "binding")
		return err
	})
}

// expectSeed waits until a Shoot has completely moved to a seed.
func (s *shoot) expectSeed(t *testing.T, seed string) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		obj, err := s.get(t.Context())
		if err != nil {
			return err
		}
		on, _, _ := unstructured.NestedString(obj.Object, "status", "seedName")
		kind, state, _ := lastOperation(obj)
		if on != seed || kind == "Migrate" || state != "Succeeded" {
			return fmt.Errorf("Shoot %s is on %s: %v", s.name, on, obj.Object["status"])
		}
		return nil
	})
}

// sshKey returns the Secret data with the key pair of the Shoot's nodes, as users get it.
func (s *shoot) sshKey(t *testing.T) map[string][]byte {
	t.Helper()
	secret, err := s.l.kube.CoreV1().Secrets(shootNamespace).Get(t.Context(), s.name+".ssh-keypair", metav1.GetOptions{})
	must(t, err)
	return secret.Data
}

func (s *shoot) ca(t *testing.T) map[string]string {
	t.Helper()
	ca, err := s.l.kube.CoreV1().ConfigMaps(shootNamespace).Get(t.Context(), s.name+".ca-cluster", metav1.GetOptions{})
	must(t, err)
	return ca.Data
}

// shootMigrates moves a Shoot from seed to seed and back. Everything is moved, and nothing is left.
func (l *landscape) shootMigrates(t *testing.T) {
	s := l.newShoot(t, "mover", func(spec map[string]any) { spec["seedName"] = "local" })
	before := addresses(s.waitForSucceeded(t))
	client := clientOf(t, s.admin(t)) // this kubeconfig has to work after the moves
	nodes := s.nodes(t, client, 2)
	keep(t, client)
	token := serviceAccountToken(t, client)
	key, ca := s.sshKey(t), s.ca(t)

	from, to := "local", "local-2"
	for range 2 {
		s.moveTo(t, to)
		s.expectSeed(t, to)
		if after := addresses(s.must(t)); !reflect.DeepEqual(before, after) {
			t.Errorf("the addresses were %v and are %v", before, after)
		}
		isKept(t, client)
		if after := s.nodes(t, client, 2); !reflect.DeepEqual(nodes, after) {
			t.Errorf("the nodes were %v and are %v", nodes, after)
		}
		if !reflect.DeepEqual(key, s.sshKey(t)) || !reflect.DeepEqual(ca, s.ca(t)) {
			t.Error("the SSH key or the authority has changed")
		}
		serviceAccountToken(t, client)
		s.wantToken(t, token)
		s.healthy(t)
		eventually(t, waitTimeout, func(context.Context) error {
			if _, err := l.seeds[from].CoreV1().Namespaces().Get(t.Context(), s.id(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the namespace is on seed %s: %v", from, err)
			}
			return nil
		})
		s.isRefusedTo(t, from)
		from, to = to, from
	}
	s.delete(t)
	s.waitGone(t)
	l.checkNothingForbidden(t)
}

// isRefusedTo expects that the gardenlet of a seed gets neither the Shoot nor its objects, and lists its own Shoots only.
func (s *shoot) isRefusedTo(t *testing.T, seed string) {
	t.Helper()
	config, _ := gardenletConfig(t, s.l.seeds[seed])
	gardenlet := clientOf(t, config).CoreV1().RESTClient()
	const gardener, core = "/apis/core.gardener.cloud/v1beta1/namespaces/" + shootNamespace, "/api/v1/namespaces/" + shootNamespace
	for _, path := range []string{gardener + "/shoots/" + s.name, gardener + "/shootstates/" + s.name,
		gardener + "/internalsecrets/" + s.name + ".ca-client",
		core + "/secrets/" + s.name + ".ssh-keypair", core + "/configmaps/" + s.name + ".ca-cluster", core + "/secrets/sample"} {
		eventually(t, waitTimeout, func(context.Context) error { // the graph has the move a moment later
			if err := gardenlet.Get().AbsPath(path).Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
				return fmt.Errorf("the gardenlet of %s asks for %s: %v", seed, path, err)
			}
			return nil
		})
	}
	for selector, want := range map[string]bool{"": false, "!x": false, "name.seed.gardener.cloud/" + seed + "!=false": false,
		"name.seed.gardener.cloud/" + seed + "=true": true} {
		for _, watch := range []string{"false", "true"} {
			list := &metav1.PartialObjectMetadataList{}
			request := gardenlet.Get().AbsPath("/apis/core.gardener.cloud/v1beta1/shoots").Param("labelSelector", selector)
			if watch == "true" {
				request = request.Param("watch", watch).Param("timeoutSeconds", "1")
			}
			data, err := request.DoRaw(t.Context())
			if apierrors.IsForbidden(err) == want || want && err != nil {
				t.Errorf("the gardenlet of %s lists Shoots with %q, watch=%s: %v", seed, selector, watch, err)
			}
			if watch == "false" && want {
				must(t, json.Unmarshal(data, list))
				if slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return o.Name == s.name }) {
					t.Errorf("the gardenlet of %s lists the Shoot", seed)
				}
			}
		}
	}
	patch := gardenlet.Patch(types.MergePatchType).AbsPath(gardener+"/shoots/"+s.name, "status").Body([]byte(`{"status":{"technicalID":"x"}}`))
	if err := patch.Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
		t.Errorf("the gardenlet of %s writes the Shoot's status: %v", seed, err)
	}
}

// serviceAccountToken creates a long-lived token in a Secret, once, and returns it.
func serviceAccountToken(t *testing.T, client kubernetes.Interface) (token string) {
	t.Helper()
	secrets := client.CoreV1().Secrets("default")
	if _, err := secrets.Get(t.Context(), "long", metav1.GetOptions{}); apierrors.IsNotFound(err) {
		_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "long", Annotations: map[string]string{
			corev1.ServiceAccountNameKey: "default"}}, Type: corev1.SecretTypeServiceAccountToken}, created)
		must(t, err)
	}
	eventually(t, waitTimeout, func(context.Context) error {
		secret, err := secrets.Get(t.Context(), "long", metav1.GetOptions{})
		if err != nil || len(secret.Data["token"]) == 0 {
			return fmt.Errorf("no token yet: %v", err)
		}
		token = string(secret.Data["token"])
		return nil
	})
	return token
}

// wantToken expects that a token is accepted. Its ServiceAccount has no rights. The API server may be restarting: with a shared
// datastore, the process stops it when it loses a lease on a busy machine.
func (s *shoot) wantToken(t *testing.T, token string) {
	t.Helper()
	config := s.admin(t)
	config.CertData, config.KeyData, config.BearerToken = nil, nil, token
	client := clientOf(t, config)
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return nil
		case err == nil || apierrors.IsUnauthorized(err):
			t.Fatalf("the token is not that of a ServiceAccount without rights: %v", err)
		}
		return err
	})
}
