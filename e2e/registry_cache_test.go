//go:build soak

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRegistryCache installs an extension of the kind Extension from its published module and chart: a Shoot with it has the
// caches that it names.
func TestRegistryCache(t *testing.T) {
	t.Parallel()
	l := newLandscape(t)
	l.installExtension(t, "registry-cache")
	s := l.newShoot(t, "cached", func(spec map[string]any) {
		// A Shoot has no kind VerticalPodAutoscaler.
		spec["kubernetes"].(map[string]any)["verticalPodAutoscaler"] = map[string]any{"enabled": false}
		spec["extensions"] = []any{map[string]any{"type": "registry-cache", "providerConfig": map[string]any{
			"apiVersion": "registry.extensions.gardener.cloud/v1alpha3", "kind": "RegistryConfig",
			"caches": []any{map[string]any{"upstream": "docker.io"}}}}}
	})
	s.waitForSucceeded(t)
	s.healthy(t)
	l.runsExtension(t, "registry-cache")
	client := clientOf(t, s.admin(t))
	caches, err := client.AppsV1().StatefulSets("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "upstream-host=docker.io"})
	must(t, err)
	services, err := client.CoreV1().Services("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "upstream-host=docker.io"})
	must(t, err)
	if len(caches.Items) != 1 || len(services.Items) != 1 || services.Items[0].Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("%d StatefulSets and %d Services of a cache", len(caches.Items), len(services.Items))
	}
	s.delete(t)
	s.waitGone(t)
}
