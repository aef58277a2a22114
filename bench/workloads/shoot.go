package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/bench/internal/harness"
)

const shootTimeout = 10 * time.Minute

// createShoot creates a Shoot with room for all Pods, waits until its nodes are ready, and returns a client for it.
func createShoot(ctx context.Context, l *harness.Landscape) (kubernetes.Interface, error) {
	config, err := l.Config()
	if err != nil {
		return nil, err
	}
	garden, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(
		`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"bench","namespace":"garden-dev"},"spec":{
		"cloudProfile":{"kind":"CloudProfile","name":"local"},"credentialsBindingName":"sample","region":"local","purpose":"testing",
		"kubernetes":{"version":"1.36.0","kubelet":{"maxPods":%d}},
		"networking":{"type":"local","nodes":"10.10.0.0/16","pods":"10.11.0.0/16","services":"10.12.0.0/16"},
		"provider":{"type":"local","workers":[{"name":"worker","minimum":%d,"maximum":%[2]d,"machine":{"type":"local",
			"image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]}]}}}`,
		podsPerNode, nodes)
	shoots := garden.CoreV1().RESTClient().Post().AbsPath("/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots")
	if err := shoots.SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("creating the shoot: %w", err)
	}
	var client kubernetes.Interface
	err = harness.Poll(ctx, shootTimeout, func() (bool, error) {
		kubeconfig, err := l.Run(ctx, "kubeconfig", "shoot", "dev/bench")
		if err != nil {
			return false, nil // it is not ready yet
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			return false, err
		}
		config.QPS = -1
		if client, err = kubernetes.NewForConfig(config); err != nil {
			return false, err
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

// scale scales the Deployment to a number of Pods, and returns how long it took until all were ready.
func scale(ctx context.Context, client kubernetes.Interface, count int) (time.Duration, error) {
	begin, deployments := time.Now(), client.AppsV1().Deployments("default")
	_, err := deployments.Create(ctx, harness.Deployment(int32(count)), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count)
		_, err = deployments.Patch(ctx, harness.DeploymentName, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return 0, err
	}
	err = harness.Poll(ctx, shootTimeout, func() (bool, error) {
		d, err := deployments.Get(ctx, harness.DeploymentName, metav1.GetOptions{})
		return err == nil && int(d.Status.ReadyReplicas) == count, nil
	})
	return time.Since(begin), err
}

// calls returns how many requests about Pods the API servers of the process answer in an idle minute, in which this
// program sends none.
func calls(ctx context.Context, client kubernetes.Interface) (float64, error) {
	before, err := harness.Requests(ctx, client, "pods")
	if err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(idle):
	}
	after, err := harness.Requests(ctx, client, "pods")
	return after - before, err
}
