package process

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Pod whose names lead out of the Runner's folder is not run: a node's API server need not be one of Kubernetes.
func TestNamesOfFolders(t *testing.T) {
	w := newWorld(t, "exit 0")
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		runs   bool
	}{
		"of Kubernetes": {func(pod *corev1.Pod) { pod.UID = "0b7c2f9e-6c5b-4ec3-9c59-0ff4f1f6a4b1" }, true},
		"a UID":         {func(pod *corev1.Pod) { pod.UID = types.UID("../../x") }, false},
		"no UID":        {func(pod *corev1.Pod) { pod.UID = "" }, false},
		"a container":   {func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "../../../x" }, false},
		"an init container": {func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: ".."}}
		}, false},
		"a volume": {func(pod *corev1.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "a/../../.."}} }, false},
	} {
		pod := newPod("p", corev1.RestartPolicyNever)
		test.change(pod)
		if got := w.HasMappedImage(pod); got != test.runs {
			t.Errorf("%s: %t", name, got)
		}
	}
}
