package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// forShoot is what an extension deploys for a Shoot: an object of the Shoot, as Gardener's components write it, and a token with
// which a component of the control plane reaches the Shoot.
const forShoot = `
apiVersion: v1
kind: ConfigMap
metadata: {name: of-extension, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: of-extension, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: of-extension, namespace: kube-system}]
`

// deployForShoot deploys it, and checks that it is in the Shoot and not in the seed.
func (s *shoot) deployForShoot(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	seed := s.seed(t)
	var data bytes.Buffer
	writer := brotli.NewWriter(&data)
	_, err := writer.Write([]byte(forShoot))
	must(t, err)
	must(t, writer.Close())
	_, err = seed.CoreV1().Secrets(s.id()).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "of-extension"},
		Data: map[string][]byte{"data.yaml.br": data.Bytes()}}, created)
	must(t, err)
	_, err = seed.CoreV1().Secrets(s.id()).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shoot-access-of-extension",
		Labels: map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
		Annotations: map[string]string{"serviceaccount.resources.gardener.cloud/name": "of-extension",
			"serviceaccount.resources.gardener.cloud/namespace": "kube-system"}}}, created)
	must(t, err)
	resource, err := json.Marshal(map[string]any{"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
		"metadata": map[string]any{"name": "of-extension"}, "spec": map[string]any{"secretRefs": []any{map[string]any{"name": "of-extension"}}}})
	must(t, err)
	must(t, seed.CoreV1().RESTClient().Post().AbsPath(s.managedResources()).SetHeader("Content-Type", "application/json").
		Body(resource).Do(t.Context()).Error())
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "of-extension", metav1.GetOptions{})
		return err
	})
	s.managedHealthy(t)
	if _, err := seed.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "of-extension", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object of a ManagedResource without a class is in the seed: %v", err)
	}
	s.reachedWithToken(t)
}

// seed returns a client of the seed that has the Shoot's control plane.
func (s *shoot) seed(t *testing.T) kubernetes.Interface {
	t.Helper()
	name, _, _ := unstructured.NestedString(s.must(t).Object, "status", "seedName")
	return s.l.seeds[name]
}

func (s *shoot) managedResources() string {
	return "/apis/resources.gardener.cloud/v1alpha1/namespaces/" + s.id() + "/managedresources"
}

// managedHealthy waits until the ManagedResource of deployForShoot is applied and healthy.
func (s *shoot) managedHealthy(t *testing.T) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) error {
		data, err := s.seed(t).CoreV1().RESTClient().Get().AbsPath(s.managedResources(), "of-extension").DoRaw(ctx)
		if err != nil {
			return err
		}
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(data, &obj.Object); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, wanted := range []string{"ResourcesApplied:True", "ResourcesHealthy:True", "ResourcesProgressing:False"} {
			found := false
			for _, condition := range conditions {
				fields := condition.(map[string]any)
				found = found || fmt.Sprintf("%s:%s", fields["type"], fields["status"]) == wanted
			}
			if !found {
				return fmt.Errorf("it is not %s: %v", wanted, conditions)
			}
		}
		return nil
	})
}

// reachedWithToken reaches the Shoot as a component of its control plane does: with the generic kubeconfig, whose name is in the
// Cluster, and a token of its own.
func (s *shoot) reachedWithToken(t *testing.T) {
	t.Helper()
	seed := s.seed(t)
	cluster := &metav1.PartialObjectMetadata{}
	must(t, seed.CoreV1().RESTClient().Get().AbsPath("/apis/extensions.gardener.cloud/v1alpha1/clusters", s.id()).
		SetHeader("Accept", "application/json").Do(t.Context()).Into(cluster))
	generic, err := seed.CoreV1().Secrets(s.id()).Get(t.Context(),
		cluster.Annotations["generic-token-kubeconfig.secret.gardener.cloud/name"], metav1.GetOptions{})
	must(t, err)
	kubeconfig, err := clientcmd.Load(generic.Data["kubeconfig"])
	must(t, err)
	user := kubeconfig.AuthInfos[kubeconfig.Contexts[kubeconfig.CurrentContext].AuthInfo]
	if !strings.HasPrefix(user.TokenFile, "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/") {
		t.Errorf("the token is expected in %q", user.TokenFile)
	}
	user.TokenFile = ""
	eventually(t, waitTimeout, func(ctx context.Context) error {
		access, err := seed.CoreV1().Secrets(s.id()).Get(ctx, "shoot-access-of-extension", metav1.GetOptions{})
		if err != nil {
			return err
		}
		user.Token = string(access.Data["token"])
		config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
		if err != nil {
			return err
		}
		component, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = component.CoreV1().ConfigMaps("kube-system").Get(ctx, "of-extension", metav1.GetOptions{})
		return err
	})
}
