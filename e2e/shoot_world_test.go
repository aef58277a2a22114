package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

const (
	shootNamespace = "garden-dev"
	shootTimeout   = waitTimeout
)

// shoot is a Shoot of a test.
type shoot struct {
	l    *landscape
	name string
}

// sampleShoot returns the sample Shoot with another name.
func sampleShoot(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("../manifests/samples/shoot.yaml")
	must(t, err)
	shoot := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(data, &shoot.Object))
	shoot.SetName(name)
	return shoot
}

// newShoot creates a Shoot like the sample, and does not wait.
func (l *landscape) newShoot(t *testing.T, name string, change func(spec map[string]any)) *shoot {
	t.Helper()
	object := sampleShoot(t, name).Object
	if change != nil {
		change(object["spec"].(map[string]any))
	}
	l.create(t, "shoots", object)
	return &shoot{l: l, name: name}
}

// id returns the Shoot's technical ID.
func (s *shoot) id() string { return "shoot--dev--" + s.name }

func (s *shoot) get(ctx context.Context) (*unstructured.Unstructured, error) {
	return s.l.at("shoots", shootNamespace).Get(ctx, s.name, metav1.GetOptions{})
}

func (s *shoot) must(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	obj, err := s.get(t.Context())
	must(t, err)
	return obj
}

func (s *shoot) patch(t *testing.T, patch string) {
	t.Helper()
	_, err := s.l.at("shoots", shootNamespace).Patch(t.Context(), s.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// hibernate hibernates the Shoot as soon as its constraints allow that: they are checked after an operation.
func (s *shoot) hibernate(t *testing.T) {
	t.Helper()
	eventually(t, waitTimeout, func(context.Context) error {
		_, err := s.l.at("shoots", shootNamespace).Patch(t.Context(), s.name, types.MergePatchType,
			[]byte(`{"spec":{"hibernation":{"enabled":true}}}`), metav1.PatchOptions{})
		return err
	})
}

// lastOperation returns the type and state of a Shoot's last operation, and whether it is for the current spec.
func lastOperation(obj *unstructured.Unstructured) (kind, state string, current bool) {
	kind, _, _ = unstructured.NestedString(obj.Object, "status", "lastOperation", "type")
	state, _, _ = unstructured.NestedString(obj.Object, "status", "lastOperation", "state")
	observed, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return kind, state, observed == obj.GetGeneration() && obj.GetAnnotations()["gardener.cloud/operation"] == ""
}

// waitForSucceeded waits until the last operation has succeeded, for the current spec.
func (s *shoot) waitForSucceeded(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var obj *unstructured.Unstructured
	eventually(t, shootTimeout, func(context.Context) (err error) {
		if obj, err = s.get(t.Context()); err != nil {
			return err
		}
		if _, state, current := lastOperation(obj); state != "Succeeded" || !current {
			return fmt.Errorf("Shoot %s: %v, %v", s.name, obj.Object["status"].(map[string]any)["lastOperation"],
				obj.Object["status"].(map[string]any)["lastErrors"])
		}
		return nil
	})
	return obj
}

// healthy waits until all conditions of a Shoot that runs are True.
func (s *shoot) healthy(t *testing.T) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		obj, err := s.get(t.Context())
		if err != nil {
			return err
		}
		met := map[string]bool{}
		for _, c := range conditionsOf(obj) {
			met[c["type"].(string)] = c["status"] == "True"
		}
		for _, wanted := range []string{"APIServerAvailable", "ControlPlaneHealthy", "ObservabilityComponentsHealthy",
			"EveryNodeReady", "SystemComponentsHealthy"} {
			if !met[wanted] {
				return fmt.Errorf("Shoot %s is not %s: %v", s.name, wanted, obj.Object["status"].(map[string]any)["conditions"])
			}
		}
		return nil
	})
}

// delete deletes the Shoot, and does not wait.
func (s *shoot) delete(t *testing.T) {
	t.Helper()
	s.patch(t, `{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)
	must(t, s.l.at("shoots", shootNamespace).Delete(t.Context(), s.name, metav1.DeleteOptions{}))
}

// waitGone waits until the Shoot is gone.
func (s *shoot) waitGone(t *testing.T) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		obj, err := s.get(t.Context())
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("Shoot %s is there: %v", s.name, obj.Object["status"])
		}
		return err
	})
}

// kubeconfig requests a kubeconfig as a user does.
func (s *shoot) kubeconfig(ctx context.Context, garden kubernetes.Interface, kind string, seconds int) ([]byte, error) {
	subresource := map[string]string{"Admin": "adminkubeconfig", "Viewer": "viewerkubeconfig"}[kind]
	body := fmt.Sprintf(
		`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"%sKubeconfigRequest","spec":{"expirationSeconds":%d}}`, kind, seconds)
	result := garden.CoreV1().RESTClient().Post().AbsPath("/apis/core.gardener.cloud/v1beta1/namespaces", shootNamespace,
		"shoots", s.name, subresource).
		Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(ctx)
	if err := result.Error(); err != nil { // of the answer's Status
		return nil, err
	}
	data, err := result.Raw()
	if err != nil {
		return nil, err
	}
	answer := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &answer.Object); err != nil {
		return nil, err
	}
	encoded, _, _ := unstructured.NestedString(answer.Object, "status", "kubeconfig")
	if encoded == "" {
		return nil, errors.New("there is no kubeconfig in the answer")
	}
	return base64.StdEncoding.DecodeString(encoded)
}

// admin returns an administrator's client configuration for the Shoot's cluster.
func (s *shoot) admin(t *testing.T) *rest.Config {
	t.Helper()
	data, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 3600)
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	must(t, err)
	config.QPS, config.Timeout, config.WarningHandler = -1, 30*time.Second, rest.NoWarnings{}
	return config
}

// nodes waits until the Shoot's cluster has exactly as many nodes as wanted, all of them ready, and returns their
// names.
func (s *shoot) nodes(t *testing.T, client kubernetes.Interface, wanted int) (names []string) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		names = nil
		ready := 0
		for _, node := range nodes.Items {
			names = append(names, node.Name)
			for _, condition := range node.Status.Conditions {
				if condition.Type == "Ready" && condition.Status == "True" && node.DeletionTimestamp == nil {
					ready++
				}
			}
		}
		if len(names) != wanted || ready != wanted {
			return fmt.Errorf("%d of the %d nodes %v are ready, not %d", ready, len(names), names, wanted)
		}
		return nil
	})
	return names
}
