package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// put adds a value at a path of an object. A path that ends with a dash appends to a list. A refused request is
// retried, because a Shoot cannot be hibernated during an operation.
func (l *life) put(t *testing.T, what, path, value string) {
	t.Helper()
	resource, name := l.object(t, what)
	patch := fmt.Sprintf(`[{"op":"add","path":%q,"value":%s}]`, path, value)
	eventually(t, waitTimeout, func(ctx context.Context) error {
		_, err := resource.Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// provideMore makes the local provider responsible for all kinds of extension resources that a Shoot can have.
func (l *life) provideMore(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"ContainerRuntime", "Extension"} {
		l.put(t, "controllerregistration/provider-local", "/spec/resources/-", fmt.Sprintf(`{"kind":%q,"type":"local"}`, kind))
	}
	l.put(t, "cloudprofile/local", "/spec/machineImages/0/versions/0/cri/0/containerRuntimes", `[{"type":"local"}]`)
}

// liveShoot waits until the Shoot is ready, replaces its machine by one of another type, opens and deletes a
// Bastion, hibernates the Shoot, and wakes it. In between it alters the Shoot's objects in the seed, and the machine
// type.
func (l *life) liveShoot(t *testing.T) {
	t.Helper()
	l.succeeds(t)
	l.put(t, "shoot/lp", "/spec/provider/workers/0/machine/type", `"local-large"`)
	l.succeeds(t)
	alter := []byte(`{"metadata":{"labels":{"role":"altered"}}}`)
	_, err := l.seeds["local"].CoreV1().Services("shoot--lp--lp").Patch(t.Context(), "kube-apiserver", types.MergePatchType,
		alter, metav1.PatchOptions{})
	must(t, err)
	l.put(t, "cloudprofile/local", "/spec/machineTypes/1/cpu", `"16"`)
	l.useBastion(t)
	for _, hibernation := range []string{`{"enabled":true}`, `{"enabled":false}`} {
		l.put(t, "shoot/lp", "/spec/hibernation", hibernation)
		l.succeeds(t)
	}
}

// useBastion creates a Bastion for the Shoot, keeps it alive, changes its ingress, and deletes it.
func (l *life) useBastion(t *testing.T) {
	t.Helper()
	const bastion = "bastion/lp"
	resource, name := l.object(t, bastion)
	_, err := resource.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operations.gardener.cloud/v1alpha1", "kind": "Bastion", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"shootRef": map[string]any{"name": "lp"}, "sshPublicKey": bastionKey,
			"ingress": []any{map[string]any{"ipBlock": map[string]any{"cidr": "127.0.0.0/8"}}},
		},
	}}, created)
	must(t, err)
	const ready = `{.status.conditions[?(@.type=="BastionReady")].status}, generation {.status.observedGeneration}`
	l.await(t, bastion, ready, "True, generation 1")
	l.annotate(t, bastion, "gardener.cloud/operation", "keepalive")
	l.put(t, bastion, "/spec/ingress/0/ipBlock/cidr", `"127.0.0.1/32"`)
	l.await(t, bastion, ready, "True, generation 2")
	l.remove(t, bastion)
	l.await(t, bastion, "", "")
}

// bastionKey is a public key without a private one.
const bastionKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbGSz9p0pPsEoWLmKQrOqkYkzzHVWfRg/sfkoh8jy7D lp"

// succeeds waits until the last operation of the Shoot has succeeded, for its current spec.
func (l *life) succeeds(t *testing.T) {
	t.Helper()
	shoots, name := l.object(t, "shoot/lp")
	eventually(t, waitTimeout, func(ctx context.Context) error {
		shoot, err := shoots.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if kind, state, current := lastOperation(shoot); state != "Succeeded" || !current {
			return fmt.Errorf("%s of the Shoot is %s: %v", kind, state, shoot.Object["status"])
		}
		return nil
	})
}
