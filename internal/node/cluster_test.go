package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/agent"
	"github.com/gardenlite/gardenlite/internal/node/host/hosttest"
	"github.com/gardenlite/gardenlite/internal/node/kubelet"
	"github.com/gardenlite/gardenlite/internal/testutil"
	"github.com/gardenlite/gardenlite/manifests"
)

const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("GARDENLITE_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
		logrus.SetOutput(io.Discard)
	}
	os.Exit(m.Run())
}

// shoot is a real control plane with the controllers that nodes need.
type shoot struct {
	t      *testing.T
	server *controlplane.Server
	client kubernetes.Interface
	config *rest.Config
	// network contains the listeners of the nodes, by their addresses.
	network sync.Map
}

func startShoot(t *testing.T) *shoot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	s := &shoot{t: t}
	server, err := controlplane.Start(ctx, controlplane.Config{Name: "test", DialNode: s.dialNode,
		PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data"), Datastore: datastore.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := server.ClientConfig("admin", "admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	s.server, s.client, s.config = server, kubernetes.NewForConfigOrDie(config), config
	s.runControllers()
	return s
}

func (s *shoot) runControllers() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	pki := s.server.PKI()
	for _, folder := range []string{"cluster", "shoot"} {
		objects, err := manifest.LoadFS(manifests.FS, folder)
		if err == nil {
			err = manifest.CreateMissing(ctx, dynamic.NewForConfigOrDie(s.config), objects)
		}
		if err != nil {
			cancel()
			s.t.Fatal(err)
		}
	}
	controllers, err := kubecontrollers.New(ctx, kubecontrollers.Config{
		ClientConfig: s.server.ClientConfig, Nodes: true, Workloads: true, PodCIDR: podNetwork, RootCA: pki.CAPEM(),
		SigningCertFile: pki.SigningCertFile(), SigningKeyFile: pki.SigningKeyFile(), ServiceAccountKeyFile: pki.ServiceAccountKeyFile(),
	})
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	var runs sync.WaitGroup
	runs.Go(func() { controllers.Run(ctx) })
	s.t.Cleanup(func() { cancel(); runs.Wait() })
}

// allow creates the RBAC objects of nodes.
func (s *shoot) allow(secretName string) {
	s.t.Helper()
	rbac := s.client.RbacV1()
	for _, obj := range node.RBAC(secretName) {
		var err error
		switch o := obj.(type) {
		case *rbacv1.ClusterRole:
			_, err = rbac.ClusterRoles().Create(s.t.Context(), o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = rbac.ClusterRoleBindings().Create(s.t.Context(), o, metav1.CreateOptions{})
		case *rbacv1.Role:
			_, err = rbac.Roles(o.Namespace).Create(s.t.Context(), o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			_, err = rbac.RoleBindings(o.Namespace).Create(s.t.Context(), o, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			s.t.Fatal(err)
		}
	}
}

func (s *shoot) put(secret *corev1.Secret) {
	s.t.Helper()
	secrets := s.client.CoreV1().Secrets(metav1.NamespaceSystem)
	_, err := secrets.Create(s.t.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(s.t.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shoot) until(what string, so func(n *corev1.Node) bool) *corev1.Node {
	s.t.Helper()
	var last *corev1.Node
	testutil.Eventually(s.t, testutil.Timeout, func(ctx context.Context) (err error) {
		if last, err = s.client.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{}); err == nil && !so(last) {
			err = fmt.Errorf("not yet: %s; the Node %+v", what, last)
		}
		return err
	})
	return last
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// TestJoins checks with a real API server, its Node authorizer and NodeRestriction, and real controllers that a machine
// joins with only a bootstrap token, and is kept up to date with only its own certificate.
func TestJoins(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	const secretName, tokenID, tokenSecret = "gardener-node-agent-p-abc", "abcdef", "0123456789abcdef"
	s := startShoot(t)
	s.allow(secretName)
	bootstrapToken := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: bootstrapapi.BootstrapTokenSecretPrefix + tokenID}, Type: bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{"token-id": []byte(tokenID), "token-secret": []byte(tokenSecret),
			"usage-bootstrap-authentication": []byte("true")},
	}
	s.put(bootstrapToken)
	url := s.server.URL()
	config := node.AgentConfig{APIServer: url, CA: string(s.server.PKI().CAPEM()), SecretName: secretName}
	order := func(keys ...string) string {
		files, err := node.Files(config, node.KubeletConfig{
			APIServer: config.APIServer, CA: config.CA, KubernetesVersion: "1.36.4",
			Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
			Labels: map[string]string{"worker.gardener.cloud/pool": "p", "node.kubernetes.io/role": "node", "node-role.kubernetes.io/worker": ""},
		}, keys)
		if err != nil {
			t.Fatal(err)
		}
		data, err := node.EncodeOSC(
			&extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{Files: files, Units: node.Units()}})
		if err != nil {
			t.Fatal(err)
		}
		s.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: metav1.NamespaceSystem},
			Data: map[string][]byte{node.DataKeyOSC: data}})
		return node.Checksum(data)
	}
	first := order("ssh-rsa A")

	machine, h := hosttest.New("node-1", clock.RealClock{})
	ctx, cancel := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	defer runs.Wait()
	defer cancel()
	machine.Units.OnStart = func(unit string) {
		if unit == node.UnitKubelet {
			runs.Go(func() { _ = kubelet.Run(ctx, h, nil) })
		}
	}
	content, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string]string{node.PathAgentConfig: string(content), node.PathBootstrapToken: tokenID + "." + tokenSecret} {
		if err := machine.Files.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs.Go(func() { _ = agent.Run(ctx, h) })

	n := s.until("a Node that is ready and has its configuration", func(n *corev1.Node) bool {
		return isReady(n) && n.Annotations[node.AnnotationChecksum] == first
	})
	if _, has := n.Labels["node-role.kubernetes.io/worker"]; has || n.Labels["worker.gardener.cloud/pool"] != "p" ||
		n.Labels["node.kubernetes.io/role"] != "node" {
		t.Errorf("labels %v", n.Labels)
	}
	if lease, err := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(
		t.Context(), "node-1", metav1.GetOptions{}); err != nil || lease.OwnerReferences[0].UID != n.UID {
		t.Errorf("the Lease %+v, %v", lease, err)
	}
	s.until("the node lifecycle controller lets pods there", func(n *corev1.Node) bool { return len(n.Spec.Taints) == 1 })

	if err := s.client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(t.Context(), bootstrapToken.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := order("ssh-rsa B")
	s.until("the new configuration", func(n *corev1.Node) bool { return n.Annotations[node.AnnotationChecksum] == second })
	if keys, err := machine.Files.ReadFile(node.PathAuthorizedKeys); err != nil || string(keys) != "ssh-rsa B\n" {
		t.Errorf("who may log in: %q, %v", keys, err)
	}

	if err := s.client.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("another Node", func(again *corev1.Node) bool { return again.UID != n.UID && isReady(again) })
}
