package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// asGardenctl sends the requests of gardenctl-v2's commands target and ssh, and of gardenlogin, as these programs
// send them.
func (s *shoot) asGardenctl(t *testing.T, node, address string) {
	identity, err := s.l.kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-identity", metav1.GetOptions{})
	if must(t, err); identity.Data["cluster-identity"] == "" {
		t.Errorf("the garden has no identity: %v", identity.Data)
	}
	found := s.findAsGardenctl(t)
	s.targetSeed(t, found)
	client := s.gardenlogin(t, found)
	if nodes := s.nodes(t, client, 2); !strings.Contains(strings.Join(nodes, " "), node) {
		t.Errorf("gardenlogin's kubeconfig leads to the nodes %v", nodes)
	}
	s.sshAsGardenctl(t, address)
}

// findAsGardenctl finds the Shoot as "target --project" and "target --seed" do.
func (s *shoot) findAsGardenctl(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	project, err := s.l.at("projects", "").Get(t.Context(), "dev", metav1.GetOptions{})
	must(t, err)
	namespace, _, _ := unstructured.NestedString(project.Object, "spec", "namespace")
	var shoot *unstructured.Unstructured
	for selector, in := range map[string]string{"metadata.name=" + s.name: namespace, "metadata.name=" + s.name + ",spec.seedName=local": ""} {
		list, err := s.l.at("shoots", in).List(t.Context(), metav1.ListOptions{FieldSelector: selector, Limit: 2})
		must(t, err)
		if len(list.Items) != 1 {
			t.Fatalf("%d Shoots are selected by %s in %q", len(list.Items), selector, in)
		}
		shoot = &list.Items[0]
	}
	return shoot
}

// targetSeed does what "target seed" and "target control-plane" do for a seed that is not a ManagedSeed.
func (s *shoot) targetSeed(t *testing.T, shoot *unstructured.Unstructured) {
	t.Helper()
	if _, err := s.l.at("managedseeds", "garden").Get(t.Context(), "local", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("ManagedSeed of a seed that is none: %v", err)
	}
	secret, err := s.l.kube.CoreV1().Secrets("garden").Get(t.Context(), "local.login", metav1.GetOptions{})
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	must(t, err)
	id, _, _ := unstructured.NestedString(shoot.Object, "status", "technicalID")
	if _, err := clientOf(t, config).AppsV1().Deployments(id).Get(t.Context(), "kube-apiserver", metav1.GetOptions{}); err != nil {
		t.Errorf("the control plane by the seed's kubeconfig: %v", err)
	}
}

// gardenlogin returns a client with addresses of the Shoot, its authority from the project, and a certificate for 15
// minutes, as the program gardenlogin does.
func (s *shoot) gardenlogin(t *testing.T, shoot *unstructured.Unstructured) kubernetes.Interface {
	t.Helper()
	data, err := s.kubeconfig(t.Context(), s.l.kube, "Admin", 900)
	must(t, err)
	kubeconfig, err := clientcmd.Load(data)
	must(t, err)
	var client kubernetes.Interface
	for _, a := range addresses(shoot).([]any) {
		advertised := a.(map[string]any)
		parsed, err := url.Parse(advertised["url"].(string))
		must(t, err)
		server, user := "https://"+parsed.Host, ""
		for _, c := range kubeconfig.Contexts {
			if kubeconfig.Clusters[c.Cluster].Server == server {
				user = c.AuthInfo
			}
		}
		if user == "" {
			t.Errorf("the kubeconfig has no context for the address %v", advertised)
			continue
		}
		auth := kubeconfig.AuthInfos[user]
		onePEM(t, auth.ClientCertificateData, "CERTIFICATE")
		onePEM(t, auth.ClientKeyData, "RSA PRIVATE KEY")
		client = clientOf(t, &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{
			CAData: []byte(s.ca(t)["ca.crt"]), CertData: auth.ClientCertificateData, KeyData: auth.ClientKeyData}})
	}
	return client
}

// onePEM expects one PEM block without headers, and nothing around it: gardenlogin refuses anything else.
func onePEM(t *testing.T, data []byte, kind string) {
	t.Helper()
	block, rest := pem.Decode(data)
	if block == nil || block.Type != kind || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 ||
		!bytes.HasPrefix(data, []byte("-----BEGIN ")) {
		t.Errorf("this is not one %s: %.60q", kind, data)
	}
}

// sshAsGardenctl does what "ssh" does: it makes an RSA key, creates a Bastion with a heartbeat from the beginning,
// logs in to the node with the key pairs of the two Secrets, and reads the names of nodes from the Machines of the
// control plane.
func (s *shoot) sshAsGardenctl(t *testing.T, address string) {
	t.Helper()
	var nodeKeys []ssh.Signer
	for _, suffix := range []string{".ssh-keypair", ".ssh-keypair.old"} {
		secret, err := s.l.kube.CoreV1().Secrets(shootNamespace).Get(t.Context(), s.name+suffix, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		must(t, err)
		onePEM(t, secret.Data["id_rsa"], "RSA PRIVATE KEY")
		signer, err := ssh.ParsePrivateKey(secret.Data["id_rsa"])
		must(t, err)
		nodeKeys = append(nodeKeys, signer)
	}
	b := &bastion{s: s, name: "cli-0a1b2c3d"}
	key, err := rsa.GenerateKey(rand.Reader, 3072)
	must(t, err)
	b.signer, err = ssh.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	must(t, err)
	spec := b.spec("127.0.0.0/8")
	spec["sshPublicKey"] = strings.TrimSpace(spec["sshPublicKey"].(string))
	object := meta("operations.gardener.cloud/v1alpha1", "Bastion", shootNamespace, b.name, map[string]any{"spec": spec})
	keepalive := map[string]any{"gardener.cloud/operation": "keepalive"}
	object["metadata"].(map[string]any)["annotations"] = keepalive
	s.l.create(t, "bastions", object)
	b.ready(t)
	_, err = s.l.at("bastions", shootNamespace).Patch(t.Context(), b.name, types.MergePatchType,
		[]byte(fmt.Sprintf(`{"metadata":{"annotations":{"gardener.cloud/operation":%q}}}`, keepalive["gardener.cloud/operation"])),
		metav1.PatchOptions{})
	must(t, err)

	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	defer client.Close()
	conn, err := client.Dial("tcp", net.JoinHostPort(address, "22"))
	must(t, err)
	inner, err := handshake(conn, address, ssh.PublicKeys(nodeKeys...))
	must(t, err)
	_ = inner.Close()
	if machines := s.machines(t); len(machines) != 2 {
		t.Errorf("the Machines are %v", machines)
	}
	b.delete(t)
}
