package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	node "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	"sigs.k8s.io/kwok/kustomize/stage/node/heartbeat"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"

	"github.com/gardenlite/gardenlite/bench/harness"
)

// kwok returns how long Pods take with KWOK's controller from their creation until all are Running. There is no
// scheduler: they are created with their Nodes.
func kwok(ctx context.Context, folder string, count int32) (took time.Duration, err error) {
	err = harness.WithBaseline(ctx, folder, func(s harness.BaselineServer) error {
		client, err := kubernetes.NewForConfig(s.Config)
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp("", "bench-kwok-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		kubeconfig := filepath.Join(dir, "kubeconfig")
		if err := harness.WriteKubeconfig(s.Config, kubeconfig); err != nil {
			return err
		}
		stages := filepath.Join(dir, "stages.yaml")
		if err := os.WriteFile(stages, []byte(strings.Join([]string{node.DefaultNodeInit, heartbeat.DefaultNodeHeartbeat,
			pod.DefaultPodReady, pod.DefaultPodComplete, pod.DefaultPodDelete}, "\n---\n")), 0o600); err != nil {
			return err
		}
		controller, err := harness.Start(dir, filepath.Join(folder, "kwok"), "--kubeconfig="+kubeconfig, "--config="+stages,
			"--manage-all-nodes=true", "--server-address=", "--node-port=0")
		if err != nil {
			return err
		}
		defer controller.End()
		if err := createNodes(ctx, client); err != nil {
			return err
		}
		if err := harness.Poll(ctx, time.Minute, func() (bool, error) {
			if controller.Ended() {
				return false, fmt.Errorf("kwok ended: %s", controller.Log())
			}
			all, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			return err == nil && ready(all.Items) == nodes, nil
		}); err != nil {
			return fmt.Errorf("waiting for the nodes: %w", err)
		}
		took, err = createPods(ctx, client, count)
		return err
	})
	return took, err
}

// createNodes creates the Nodes, and the ServiceAccount that Pods need: no controller does.
func createNodes(ctx context.Context, client kubernetes.Interface) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the ServiceAccount: %w", err)
	}
	for i := range nodes {
		_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1000")}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a node: %w", err)
		}
	}
	return nil
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func createPods(ctx context.Context, client kubernetes.Interface, count int32) (time.Duration, error) {
	begin := time.Now()
	for i := range count {
		_, err := client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i)},
			Spec: corev1.PodSpec{
				NodeName: nodeName(int(i) % nodes), AutomountServiceAccountToken: new(bool),
				Containers: []corev1.Container{{Name: "web", Image: "nginx"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return 0, fmt.Errorf("creating a Pod: %w", err)
		}
	}
	err := harness.Poll(ctx, shootTimeout, func() (bool, error) {
		waiting, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Running", Limit: 1})
		return err == nil && len(waiting.Items) == 0, nil
	})
	return time.Since(begin), err
}
