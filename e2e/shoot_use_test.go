package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// TestShootUsedFirst does with a Shoot's cluster what a Kubernetes user does first. All of it is done with a kubeconfig that
// the garden has made.
func TestShootUsedFirst(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	s := l.newShoot(t, "used", func(spec map[string]any) { spec["kubernetes"].(map[string]any)["version"] = "1.35.2" })
	obj := s.waitForSucceeded(t)
	config := s.admin(t)
	client := clientOf(t, config)
	s.nodes(t, client, 2)
	s.healthy(t)

	t.Run("version", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		must(t, err)
		if version.GitVersion != "v1.35.2" || version.Minor != "35" {
			t.Errorf("the version is %+v", version)
		}
		if address := fmt.Sprint(obj.Object["status"].(map[string]any)["advertisedAddresses"]); !strings.Contains(address, config.Host) {
			t.Errorf("the kubeconfig is for %s, the addresses are %s", config.Host, address)
		}
	})
	t.Run("nodes", func(t *testing.T) { nodesAreComplete(t, client) })
	t.Run("service account", func(t *testing.T) { serviceAccountWorks(t, config, client) })
	t.Run("garbage collection", func(t *testing.T) { ownedGoes(t, client) })
	t.Run("watch", func(t *testing.T) { watchSees(t, client) })
	t.Run("kubectl", func(t *testing.T) { s.kubectlWorks(t) })
	t.Run("namespace goes", func(t *testing.T) {
		must(t, client.CoreV1().Namespaces().Delete(t.Context(), "mine", metav1.DeleteOptions{}))
		eventually(t, waitTimeout, func(context.Context) error {
			if _, err := client.CoreV1().Namespaces().Get(t.Context(), "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the namespace is there: %v", err)
			}
			return nil
		})
	})
	l.checkNothingForbidden(t)
}

func nodesAreComplete(t *testing.T, client kubernetes.Interface) {
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, node := range nodes.Items {
		for label, value := range map[string]string{
			"worker.gardener.cloud/pool": "worker", "topology.kubernetes.io/zone": "local-a", "topology.kubernetes.io/region": "local",
			"node.kubernetes.io/instance-type": "local", "kubernetes.io/hostname": node.Name, "kubernetes.io/os": "linux",
		} {
			if node.Labels[label] != value {
				t.Errorf("node %s: the label %s is %q, not %q", node.Name, label, node.Labels[label], value)
			}
		}
		address := ""
		for _, a := range node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				address = a.Address
			}
		}
		if !strings.HasPrefix(address, "10.10.") {
			t.Errorf("node %s has the address %q, which is not of the Shoot's nodes", node.Name, address)
		}
		if node.Status.NodeInfo.KubeletVersion != "v1.35.2" || node.Spec.ProviderID == "" || node.Status.Capacity.Cpu().Value() != 2 {
			t.Errorf("node %s: %+v, %q, %v", node.Name, node.Status.NodeInfo, node.Spec.ProviderID, node.Status.Capacity)
		}
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), node.Name, metav1.GetOptions{})
		if err != nil || lease.Spec.RenewTime == nil {
			t.Errorf("node %s has no heartbeat: %v", node.Name, err)
		}
	}
}

// serviceAccountWorks creates a ServiceAccount with a role and a token, and uses the token.
func serviceAccountWorks(t *testing.T, config *rest.Config, client kubernetes.Interface) {
	ctx := t.Context()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, created)
	must(t, err)
	_, err = client.CoreV1().ServiceAccounts("mine").Create(
		ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, created)
	must(t, err)
	_, err = client.RbacV1().Roles("mine").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}, created)
	must(t, err)
	_, err = client.RbacV1().RoleBindings("mine").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: "mine"}}}, created)
	must(t, err)
	token, err := client.CoreV1().ServiceAccounts("mine").CreateToken(ctx, "reader",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(600))}}, created)
	must(t, err)
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.BearerToken, anonymous.WarningHandler = token.Status.Token, rest.NoWarnings{}
	reader := clientOf(t, anonymous)
	eventually(t, waitTimeout, func(context.Context) error { // the authorizer has new roles a moment later
		configMaps, err := reader.CoreV1().ConfigMaps("mine").List(ctx, metav1.ListOptions{})
		if err == nil && len(configMaps.Items) == 0 {
			err = fmt.Errorf("no kube-root-ca.crt in a new namespace")
		}
		return err
	})
	if _, err := reader.CoreV1().Secrets("mine").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the account reads Secrets: %v", err)
	}
}

func ownedGoes(t *testing.T, client kubernetes.Interface) {
	configMaps := client.CoreV1().ConfigMaps("default")
	owner, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, created)
	must(t, err)
	_, err = configMaps.Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}}, created)
	must(t, err)
	must(t, configMaps.Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	eventually(t, waitTimeout, func(context.Context) error {
		if _, err := configMaps.Get(t.Context(), "owned", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("what has lost its owner is there: %v", err)
		}
		return nil
	})
}

func watchSees(t *testing.T, client kubernetes.Interface) {
	configMaps := client.CoreV1().ConfigMaps("default")
	w, err := configMaps.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=seen"})
	must(t, err)
	defer w.Stop()
	_, err = configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}, created)
	must(t, err)
	select {
	case event := <-w.ResultChan():
		if seen, ok := event.Object.(*corev1.ConfigMap); !ok || seen.Name != "seen" {
			t.Errorf("%+v", event)
		}
	case <-time.After(waitTimeout):
		t.Error("the watch sees nothing")
	}
}

// kubectlWorks uses kubectl as its users do, also for custom resources.
func (s *shoot) kubectlWorks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, []byte(gardenlite(t, s.l.dir, "kubeconfig", "shoot", "dev/"+s.name).OK(t).Stdout), 0o600))
	run := func(stdin string, args ...string) result {
		t.Helper()
		return command(t, stdin, kubectlBinary, append([]string{"--kubeconfig", file, "--cache-dir", t.TempDir()}, args...)...)
	}
	run("", "get", "nodes").OK(t).Shows(t, "Ready", "v1.35.2")
	run("", "auth", "whoami").OK(t).Shows(t, "gardenlite:admin", "system:masters")
	run("", "auth", "can-i", "delete", "nodes").OK(t).Shows(t, "yes")
	run("", "explain", "pod.spec.containers").OK(t).Shows(t, "image")
	run("", "create", "namespace", "ctl").OK(t)
	run(crontabs, "apply", "--server-side", "-f", "-").OK(t)
	run("", "wait", "crd/crontabs.example.com", "--for=condition=Established", "--timeout=30s").OK(t)
	eventually(t, waitTimeout, func(context.Context) error {
		if r := run(crontab, "apply", "--server-side", "-n", "ctl", "-f", "-"); r.Code != 0 {
			return fmt.Errorf("%s", r.Stderr)
		}
		return nil
	})
	run("", "get", "crontabs", "-A").OK(t).Shows(t, "ctl", "nightly")
	run("", "delete", "namespace", "ctl", "--timeout=60s").OK(t)
}

const crontabs = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {schedule: {type: string}}}}}}
`

const crontab = `{apiVersion: example.com/v1, kind: CronTab, metadata: {name: nightly}, spec: {schedule: "0 0 * * *"}}`
