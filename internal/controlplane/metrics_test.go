package controlplane

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/metrics/pkg/apis/metrics"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestNodeMetrics checks that a Node whose kubelet does not answer has no metrics, as with metrics-server, and that the
// others have the sum of their Pods.
func TestNodeMetrics(t *testing.T) {
	nodes := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
	pods := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, node := range []string{"answers", "silent", "empty"} {
		nodes.Items = append(nodes.Items, corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: node}})
	}
	for name, node := range map[string]string{"a": "answers", "b": "answers", "c": "silent"} {
		pods.Items = append(pods.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("10Mi")}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
		})
	}
	answers := map[string]any{"/api/v1/nodes": nodes, "/api/v1/pods": pods, "/api/v1/nodes/answers/proxy/stats/summary": stats.Summary{}}
	for _, node := range nodes.Items {
		answers["/api/v1/nodes/"+node.Name] = node
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.Error(w, "the kubelet does not answer", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer api.Close()
	client, err := corev1client.NewForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	source := usageSource{client, &clocktesting.FakePassiveClock{}, klog.Background()}
	m := &nodeMetrics{newUsageStorage(source, "node", "NodeMetrics", false, &metrics.NodeMetrics{}, &metrics.NodeMetricsList{})}

	list, err := m.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	usage := map[string]string{}
	for _, node := range list.(*metrics.NodeMetricsList).Items {
		usage[node.Name] = node.Usage.Cpu().String() + " " + node.Usage.Memory().String()
	}
	if len(usage) != 2 || usage["answers"] != "200m 20Mi" || usage["empty"] != "0 0" {
		t.Errorf("the nodes use %v", usage)
	}
	if _, err := m.Get(t.Context(), "silent", nil); !apierrors.IsNotFound(err) {
		t.Errorf("the error for the node that does not answer is %v", err)
	}
	if node, err := m.Get(t.Context(), "empty", nil); err != nil || !node.(*metrics.NodeMetrics).Usage.Cpu().IsZero() {
		t.Errorf("the node without Pods has %v, %v", node, err)
	}
}
