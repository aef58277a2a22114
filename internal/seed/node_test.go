package seed

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func deployment(name string, labels map[string]string) *appsv1.Deployment {
	app := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}}},
	}}
}

// TestPodsRun checks that the Pods of a seed run on its Nodes, which exist from the first Pod on, also after a restart.
// Deployments of shoots' control planes get no Pods.
func TestPodsRun(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Config: controlplane.Config{Name: "local", PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data")},
		Region: "region", Zones: []string{"zone", "other"}}
	cluster := start(t, cfg)
	client := kubernetes.NewForConfigOrDie(cluster.AdminConfig())
	if nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil || len(nodes.Items) > 0 {
		t.Errorf("a cluster without Pods has the Nodes %v, %v", nodes.Items, err)
	}
	plane := map[string]string{"gardener.cloud/role": "controlplane", "role": "apiserver"}
	for _, d := range []*appsv1.Deployment{deployment("kube-apiserver", plane), deployment("extension", nil)} {
		if _, err := client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	old := map[types.UID]bool{}
	available := func(cluster *Cluster) {
		t.Helper()
		client := kubernetes.NewForConfigOrDie(cluster.AdminConfig())
		var pods *corev1.PodList
		testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) (err error) {
			if pods, err = client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err != nil {
				return err
			}
			ready := 0
			for _, pod := range pods.Items {
				if !old[pod.UID] && pod.Status.Phase == corev1.PodRunning && pod.Labels["app"] == "extension" {
					ready++
				}
			}
			if ready != 2 || len(pods.Items) != 2 {
				return fmt.Errorf("%d of %d Pods are new ones of the Deployment and run", ready, len(pods.Items))
			}
			return nil
		})
		for _, pod := range pods.Items {
			old[pod.UID] = true
		}
	}
	available(cluster)
	testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
		ranges, addresses := map[string]bool{}, map[string]bool{}
		for name, zone := range map[string]string{"seed-local": "zone", "seed-local.other": "other"} {
			node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			ranges[node.Spec.PodCIDR] = true
			for _, address := range node.Status.Addresses {
				addresses[address.Address] = true
			}
			if node.Labels[corev1.LabelTopologyRegion] != "region" || node.Labels[corev1.LabelTopologyZone] != zone ||
				len(node.Spec.Taints) > 0 || !strings.HasSuffix(node.Spec.PodCIDR, "/18") {
				return fmt.Errorf("the Node is %+v, %+v", node.Labels, node.Spec)
			}
		}
		if len(ranges) != 2 || !addresses["10.240.0.4"] || !addresses["10.240.0.5"] {
			return fmt.Errorf("the ranges of the Nodes are %v, the addresses %v", ranges, addresses)
		}
		return nil
	})
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, cfg)
	pod := kubernetes.NewForConfigOrDie(again.AdminConfig()).CoreV1().Pods("default")
	if err := pod.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	available(again)
}
