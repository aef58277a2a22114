package node_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

var (
	crds   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	stages = schema.GroupVersionResource{Group: "kwok.x-k8s.io", Version: "v1alpha1", Resource: "stages"}
)

// testStages applies the sample while Pods run: the selected Pods start slowly, or crash; other Pods are not affected.
func (s *shoot) testStages(t *testing.T, c kubernetes.Interface) {
	labels := map[string]map[string]string{"crashes": {"chaos": "crash-loop"}, "plain": nil, "slow": {"start": "slow"}}
	createPod := func(name, node string) {
		create(t, c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stage-" + name, Labels: labels[name]},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "a", Image: "nginx"}, {Name: "b", Image: "nginx"}}}})
	}
	createPod("crashes", "")
	createPod("plain", "")
	s.applySample(t)
	phase := func(name string, is func(*corev1.Pod) bool) {
		t.Helper()
		testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
			pod, err := c.CoreV1().Pods(namespace).Get(ctx, "stage-"+name, metav1.GetOptions{})
			if err == nil && !is(pod) {
				err = fmt.Errorf("%s is %+v", name, pod.Status)
			}
			return err
		})
	}
	crashes := func(pod *corev1.Pod) bool {
		all := pod.Status.ContainerStatuses
		return len(all) == 2 && all[0].RestartCount == 1 && all[1].State.Waiting != nil && all[1].State.Waiting.Reason == "CrashLoopBackOff" &&
			all[0].State.Running == nil
	}
	running := func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && pod.Status.ContainerStatuses[0].Ready
	}
	phase("crashes", crashes)
	phase("plain", running)
	crashed, err := c.CoreV1().Pods(namespace).Get(t.Context(), "stage-crashes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	createPod("slow", crashed.Spec.NodeName) // other kubelets may have the Stages later
	phase("slow", func(pod *corev1.Pod) bool { return running(pod) && pod.Status.PodIP != "" })
	slow, err := c.CoreV1().Pods(namespace).Get(t.Context(), "stage-slow", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if waited := slow.Status.StartTime.Sub(slow.CreationTimestamp.Time).Seconds(); waited < 1 {
		t.Errorf("it ran %v seconds after it was created", waited)
	}
	s.hostileStage(t, c)
	// After the Stages are deleted, Pods stay as they are, and can be deleted.
	if err := s.dynamic(t).Resource(stages).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	phase("crashes", crashes)
	for _, name := range []string{"stage-crashes", "stage-plain", "stage-slow"} {
		if err := c.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
			_, err := c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s is still there: %w", name, err)
		})
	}
}

// hostileStage checks that a Stage has no more rights than a kubelet.
func (s *shoot) hostileStage(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	text := `{"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": "hostile"}, "spec": {
		"resourceRef": {"kind": "Pod"}, "selector": {"matchLabels": {"chaos": "hostile"}},
		"steps": [{"patch": {"template": "{\"metadata\": {\"annotations\": {\"x\": \"y\"}}}"}}]}}`
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.dynamic(t).Resource(stages).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	create(t, c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stage-hostile", Labels: map[string]string{"chaos": "hostile"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "nginx"}}}})
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		events, err := c.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=stage-hostile,reason=FailedStage"})
		if err == nil && (len(events.Items) == 0 || !strings.Contains(events.Items[0].Message, "forbidden")) {
			err = fmt.Errorf("the Events are %+v", events.Items)
		}
		return err
	})
}

func create(t *testing.T, c kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	if _, err := c.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *shoot) dynamic(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// applySample creates what is in manifests/samples/stages.yaml.
func (s *shoot) applySample(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile("../../manifests/samples/stages.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			t.Fatal(err)
		}
		at := stages
		if obj.GetKind() == "CustomResourceDefinition" {
			at = crds
		}
		testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error { // the API is served a moment later
			_, err := s.dynamic(t).Resource(at).Create(ctx, obj, metav1.CreateOptions{})
			return err
		})
	}
}
