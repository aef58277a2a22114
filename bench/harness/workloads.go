package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	// DeploymentImage is the image of the Pods that Deploy creates.
	DeploymentImage = "nginx"
	deploymentName  = "bench"
	podTimeout      = 10 * time.Minute
	idle            = time.Minute
)

// Deploy creates a Deployment, or scales it, and returns how long it takes until all are available. It watches the Deployment,
// because frequent requests would take part of the time that it measures.
func Deploy(ctx context.Context, client kubernetes.Interface, replicas int32) (time.Duration, error) {
	labels := map[string]string{"app": deploymentName}
	begin, deployments := time.Now(), client.AppsV1().Deployments(corev1.NamespaceDefault)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: deploymentName}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: DeploymentImage, Args: []string{"3600"}}}}},
	}}
	deployment, err := deployments.Create(ctx, deployment, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		deployment, err = deployments.Patch(ctx, deploymentName, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	events, err := deployments.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + deploymentName, ResourceVersion: deployment.ResourceVersion,
	})
	if err != nil {
		return 0, err
	}
	_, err = watchtools.UntilWithoutRetry(ctx, events, func(event watch.Event) (bool, error) {
		d, ok := event.Object.(*appsv1.Deployment)
		return ok && d.Status.AvailableReplicas == replicas, nil
	})
	return time.Since(begin), err
}

// RemoveDeployment deletes the Deployment, if there is one, and waits until its Pods are gone.
func RemoveDeployment(ctx context.Context, client kubernetes.Interface) error {
	err := client.AppsV1().Deployments(corev1.NamespaceDefault).Delete(ctx, deploymentName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return Poll(ctx, podTimeout, func() (bool, error) {
		pods, err := client.CoreV1().Pods(corev1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}

// IdleRequests returns how many requests the API servers of a process answer in an idle minute, in which this program
// sends none: all, or those with a label.
func IdleRequests(ctx context.Context, client kubernetes.Interface, labels ...string) (float64, error) {
	before, err := Counter(ctx, client, "apiserver_request_total", labels...)
	if err != nil {
		return 0, err
	}
	if err := Pause(ctx, idle); err != nil {
		return 0, err
	}
	after, err := Counter(ctx, client, "apiserver_request_total", labels...)
	return after - before, err
}

// Counter returns the sum of the API server's series with this name and the labels, which are written as in a query.
func Counter(ctx context.Context, client kubernetes.Interface, name string, labels ...string) (sum float64, err error) {
	page, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(page)) {
		series, value, _ := strings.Cut(line, "} ")
		lacks := func(label string) bool { return !strings.Contains(series, label) }
		if !strings.HasPrefix(series, name+"{") || slices.ContainsFunc(labels, lacks) {
			continue
		}
		number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return 0, fmt.Errorf("reading the metrics: %q: %w", line, err)
		}
		sum += number
	}
	return sum, nil
}
