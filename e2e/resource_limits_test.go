package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// limitsFile returns a file with a limit of the size of ConfigMaps, and one of the number of ExposureClasses.
func limitsFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	must(t, os.WriteFile(file, []byte(`
limits:
- {apiGroups: [""], apiVersions: ["*"], resources: [configmaps], size: 100Ki}
- {apiGroups: [core.gardener.cloud], apiVersions: [v1beta1], resources: [exposureclasses], count: 0}
`), 0o600))
	return file
}

// resourceLimits checks what --resource-admission-configuration refuses.
func (l *landscape) resourceLimits(t *testing.T) {
	large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"x": strings.Repeat("x", 101<<10)}}
	_, err := l.kube.CoreV1().ConfigMaps("garden-dev").Create(t.Context(), large, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "maximum resource size exceeded! Size in request: ") {
		t.Errorf("a ConfigMap that is too large: %v", err)
	}
	_, err = l.kube.CoreV1().ConfigMaps("default").Create(t.Context(), large, metav1.CreateOptions{})
	must(t, err) // it is not in a Project
	class := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "limited"}, "handler": "x"}}
	class.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("ExposureClass"))
	classes := l.dyn.Resource(gardencorev1beta1.SchemeGroupVersion.WithResource("exposureclasses"))
	_, err = classes.Create(t.Context(), class, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "maximum resource count exceeded! max allowed: 0") {
		t.Errorf("an ExposureClass: %v", err)
	}
}
