package harness

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// DeploymentName is the name of the Deployment that benchmarks create.
const DeploymentName = "bench"

// Deployment returns a Deployment of simulated Pods.
func Deployment(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": DeploymentName}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: DeploymentName}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}}},
	}}
}

// Requests returns how many requests the API servers of a process have answered: all, or those for a resource.
func Requests(ctx context.Context, client kubernetes.Interface, resource string) (sum float64, err error) {
	data, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	label := ""
	if resource != "" {
		label = fmt.Sprintf(`resource="%s"`, resource)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, label) {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				return 0, fmt.Errorf("reading the metrics: %w", err)
			}
			sum += value
		}
	}
	return sum, lines.Err()
}
