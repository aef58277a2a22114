package e2e

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// keep creates what a user may have in the Shoot's cluster: a ConfigMap, and a Deployment that runs.
func keep(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("default").Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"a": "b"}}, created)
	must(t, err)
	app := map[string]string{"app": "kept"}
	_, err = client.AppsV1().Deployments("default").Create(
		t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}}},
		}}, created)
	must(t, err)
	isKept(t, client)
}

// isKept checks what keep created: the Pods of the Deployment run, on existing Nodes.
func isKept(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	if kept, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil || kept.Data["a"] != "b" {
		t.Errorf("what the user had made is not there: %v", err)
	}
	eventually(t, waitTimeout, func(ctx context.Context) error {
		deployment, err := client.AppsV1().Deployments("default").Get(ctx, "kept", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=kept"})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if _, err := client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{}); err != nil {
				return fmt.Errorf("the Pod %s is %s on the Node %q: %w", pod.Name, pod.Status.Phase, pod.Spec.NodeName, err)
			}
		}
		if deployment.Status.AvailableReplicas != 3 || len(pods.Items) != 3 {
			return fmt.Errorf("there are %d Pods, and the Deployment says %+v", len(pods.Items), deployment.Status)
		}
		return nil
	})
}

func addresses(obj *unstructured.Unstructured) any {
	return obj.Object["status"].(map[string]any)["advertisedAddresses"]
}

// TestShootHibernates hibernates a Shoot and wakes it: its cluster is as it was, at the same addresses. The Shoot is deleted while
// it has something of an extension.
func TestShootHibernates(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	s := l.newShoot(t, "sleepy", nil)
	before := addresses(s.waitForSucceeded(t))
	config := s.admin(t)
	client := clientOf(t, config)
	s.nodes(t, client, 2)
	keep(t, client)
	s.deployForShoot(t, client)

	s.hibernate(t)
	obj := s.waitForSucceeded(t)
	if asleep, _, _ := unstructured.NestedBool(obj.Object, "status", "hibernated"); !asleep {
		t.Errorf("the Shoot is not hibernated: %v", obj.Object["status"])
	}
	if _, err := client.Discovery().ServerVersion(); err == nil {
		t.Error("the API server of a hibernated Shoot answers")
	}
	if machines := s.machines(t); len(machines) > 0 {
		t.Errorf("a hibernated Shoot has machines: %v", machines)
	}
	s.patch(t, `{"spec":{"hibernation":{"enabled":false}}}`)
	obj = s.waitForSucceeded(t)
	if after := addresses(obj); !reflect.DeepEqual(before, after) {
		t.Errorf("the addresses were %v and are %v", before, after)
	}
	isKept(t, client)
	s.nodes(t, client, 2)
	s.managedHealthy(t)
	s.reachedWithToken(t)
	s.healthy(t)

	// Created hibernated: there is no API server until it is woken up.
	b := l.newShoot(t, "born", func(spec map[string]any) { spec["hibernation"] = map[string]any{"enabled": true} })
	b.waitForSucceeded(t)
	if status := gardenlite(t, l.dir, "status", "-o", "json").OK(t).Stdout; strings.Contains(status, b.id()) &&
		strings.Contains(status, `"kind": "shoot",`+"\n"+`      "name": "`+b.id()) {
		t.Errorf("the cluster of a Shoot that was born hibernated runs: %s", status)
	}
	b.patch(t, `{"spec":{"hibernation":{"enabled":false}}}`)
	b.waitForSucceeded(t)
	b.nodes(t, clientOf(t, b.admin(t)), 2)
	s.delete(t)
	b.delete(t)
	s.waitGone(t)
	b.waitGone(t)
	l.checkNothingForbidden(t)
}

// machines returns the names of the Shoot's Machines in its seed.
func (s *shoot) machines(t *testing.T) (names []string) {
	t.Helper()
	all := &metav1.PartialObjectMetadataList{}
	must(t, s.seed(t).CoreV1().RESTClient().Get().AbsPath("/apis/machine.sapcloud.io/v1alpha1/namespaces", s.id(), "machines").
		SetHeader("Accept", "application/json").Do(t.Context()).Into(all))
	for _, machine := range all.Items {
		names = append(names, machine.Name)
	}
	return names
}

// TestShootWorkersAndVersions changes how many nodes there are, of which kinds, and the version of Kubernetes.
func TestShootWorkersAndVersions(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	s := l.newShoot(t, "works", func(spec map[string]any) { spec["kubernetes"].(map[string]any)["version"] = "1.34.4" })
	s.waitForSucceeded(t)
	client := clientOf(t, s.admin(t))
	first := s.nodes(t, client, 2)
	keep(t, client)

	pool := func(name, kind string, count int) string {
		return fmt.Sprintf(`{"name":%q,"minimum":%d,"maximum":%d,"machine":{"type":%q,"image":{"name":"local",`+
			`"version":"1.0.0"}},"zones":["local-a","local-b"]}`, name, count, count, kind)
	}
	t.Run("more", func(t *testing.T) {
		s.patch(t, `{"spec":{"provider":{"workers":[{"name":"worker","minimum":3,"maximum":3,"machine":{"type":"local",`+
			`"image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]},`+pool("second", "local", 2)+`]}}}`)
		s.waitForSucceeded(t)
		names := s.nodes(t, client, 5)
		for _, name := range first {
			if !slices.Contains(names, name) {
				t.Errorf("the node %s has gone: %v", name, names)
			}
		}
		zones := map[string]int{}
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "worker.gardener.cloud/pool=second"})
		must(t, err)
		for _, node := range nodes.Items {
			zones[node.Labels["topology.kubernetes.io/zone"]]++
		}
		if zones["local-a"] != 1 || zones["local-b"] != 1 {
			t.Errorf("the second pool is in the zones %v", zones)
		}
	})
	t.Run("another machine type rolls", func(t *testing.T) {
		old := s.nodes(t, client, 5)
		s.patch(t, `{"spec":{"provider":{"workers":[{"name":"worker","minimum":1,"maximum":1,"machine":{"type":"local",`+
			`"image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]},`+pool("second", "local-large", 2)+`]}}}`)
		s.waitForSucceeded(t)
		names := s.nodes(t, client, 3)
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "worker.gardener.cloud/pool=second"})
		must(t, err)
		for _, node := range nodes.Items {
			if slices.Contains(old, node.Name) || node.Labels["node.kubernetes.io/instance-type"] != "local-large" {
				t.Errorf("%s is not new, or not large: %v; nodes %v", node.Name, node.Labels, names)
			}
		}
	})
	t.Run("another version rolls", func(t *testing.T) {
		old := s.nodes(t, client, 3)
		s.patch(t, `{"spec":{"kubernetes":{"version":"1.35.2"}}}`)
		s.waitForSucceeded(t)
		version, err := client.Discovery().ServerVersion()
		must(t, err)
		if version.GitVersion != "v1.35.2" {
			t.Errorf("the version is %s", version.GitVersion)
		}
		for _, name := range s.nodes(t, client, 3) {
			node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			must(t, err)
			if slices.Contains(old, name) || node.Status.NodeInfo.KubeletVersion != "v1.35.2" {
				t.Errorf("%s is not new, or has version %s", name, node.Status.NodeInfo.KubeletVersion)
			}
		}
		isKept(t, client)
	})
	s.delete(t)
	s.waitGone(t)
	l.checkNothingForbidden(t)
}

// shootRestarts stops and starts the landscape: Shoots have the addresses and the certificates that they had.
func (l *landscape) shootRestarts(t *testing.T) {
	s := l.newShoot(t, "again", nil)
	before := addresses(s.waitForSucceeded(t))
	config := s.admin(t)
	client := clientOf(t, config)
	names := s.nodes(t, client, 2)
	keep(t, client)
	lost := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lost"}, Spec: corev1.NodeSpec{ProviderID: "local:///local-a/lost"}}
	_, err := client.CoreV1().Nodes().Create(t.Context(), lost, metav1.CreateOptions{}) // it has no instance, and is deleted
	must(t, err)
	l.stop(t)
	l.up(t)
	if after := addresses(s.must(t)); !reflect.DeepEqual(before, after) {
		t.Errorf("the addresses were %v and are %v", before, after)
	}
	eventually(t, shootTimeout, func(context.Context) error {
		_, err := client.Discovery().ServerVersion()
		return err
	})
	isKept(t, client)
	if after := s.nodes(t, client, 2); !slices.Equal(names, after) {
		t.Errorf("the nodes were %v and are %v", names, after)
	}
	s.healthy(t)
	s.delete(t)
	s.waitGone(t)
}

// shootDeletionLeavesNothing compares what exists before and after Shoots are created and deleted.
func (l *landscape) shootDeletionLeavesNothing(t *testing.T) {
	count := 3
	if testutil.Soaking() {
		count = 20
	}
	round := func(prefix string) {
		var shoots []*shoot
		for i := range count {
			shoots = append(shoots, l.newShoot(t, fmt.Sprintf("%s%d", prefix, i), func(spec map[string]any) {
				spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)["minimum"] = 1
			}))
		}
		var ports []string
		for _, s := range shoots {
			obj := s.waitForSucceeded(t)
			ports = append(ports, obj.Object["status"].(map[string]any)["advertisedAddresses"].([]any)[0].(map[string]any)["url"].(string))
			s.nodes(t, clientOf(t, s.admin(t)), 1)
		}
		for _, s := range shoots {
			s.delete(t)
		}
		for _, s := range shoots {
			s.waitGone(t)
		}
		for _, port := range ports {
			at, err := url.Parse(port)
			must(t, err)
			if l.listensAt(t, at.Host) {
				t.Errorf("the landscape listens at %s", at.Host)
			}
		}
	}
	round("warm") // for what is created once and kept
	var before counted
	eventually(t, shootTimeout, func(context.Context) error { // garbage is deleted a little after the Shoots
		before = l.everything(t)
		return before.lacks("warm") // in the seed and, until its garbage collector has come to them, in the garden
	})
	round("gone")
	eventually(t, shootTimeout, func(context.Context) error { return sameOf(before, l.everything(t)) })
	l.checkNothingForbidden(t)
}

// TestShootsAtOnce runs ten Shoots at once.
func TestShootsAtOnce(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	var shoots []*shoot
	for i := range 10 {
		shoots = append(shoots, l.newShoot(t, fmt.Sprintf("many%d", i), func(spec map[string]any) {
			spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)["minimum"] = 1
		}))
	}
	seen := map[string]bool{}
	for _, s := range shoots {
		s.waitForSucceeded(t)
		config := s.admin(t)
		seen[config.Host] = true
		s.nodes(t, clientOf(t, config), 1)
		// One Shoot does not accept the kubeconfig of another one.
		other := rest.CopyConfig(config)
		other.Host = shoots[0].admin(t).Host
		other.Insecure, other.CAData = true, nil
		if other.Host == config.Host {
			continue
		}
		if _, err := clientOf(t, other).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s's kubeconfig is let in at %s: %v", s.name, shoots[0].name, err)
		}
	}
	if len(seen) != len(shoots) {
		t.Errorf("%d Shoots have %d addresses", len(shoots), len(seen))
	}
	begin := time.Now()
	for _, s := range shoots {
		s.delete(t)
	}
	for _, s := range shoots {
		s.waitGone(t)
	}
	t.Logf("deleted after %s", time.Since(begin).Round(time.Millisecond))
	l.checkNothingForbidden(t)
}
