package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardenlite/gardenlite/bench/harness"
)

const shootTimeout = 10 * time.Minute

// startWithShoot starts a landscape with a Shoot, and returns a client for the Shoot.
func startWithShoot(ctx context.Context) (*harness.Landscape, kubernetes.Interface, error) {
	l, err := harness.StartLandscape(ctx)
	if err != nil {
		return nil, nil, err
	}
	client, err := createShoot(ctx, l)
	if err != nil {
		l.Remove()
		return nil, nil, err
	}
	return l, client, nil
}

// createShoot creates a Shoot with room for all Pods, waits until its nodes are ready, and returns a client for it.
func createShoot(ctx context.Context, l *harness.Landscape) (kubernetes.Interface, error) {
	kubernetesSpec := map[string]any{"version": harness.KubernetesVersion, "kubelet": map[string]any{"maxPods": podsPerNode}}
	if err := l.CreateShoot(ctx, "bench", nodes, map[string]any{"kubernetes": kubernetesSpec}); err != nil {
		return nil, err
	}
	var client kubernetes.Interface
	err := harness.Poll(ctx, shootTimeout, func() (_ bool, err error) {
		if client, err = l.Client(ctx, "shoot", "dev/bench"); err != nil {
			return false, nil // it is not ready yet
		}
		all, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && ready(all.Items) == nodes, nil
	})
	return client, err
}

func ready(nodes []corev1.Node) (count int) {
	for _, node := range nodes {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				count++
			}
		}
	}
	return count
}
