package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const ownIssuer = "https://issuer.example.com/operations"

// TestShootOperations does with one Shoot what users request by annotations and settings, moves it, and deletes it
// by force.
func TestShootOperations(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	s := l.newShoot(t, "operated", func(spec map[string]any) {
		spec["seedName"], spec["purpose"] = "local", "evaluation"
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["minimum"], worker["maximum"] = int64(1), int64(1)
		spec["kubernetes"].(map[string]any)["kubeAPIServer"] = map[string]any{"serviceAccountConfig": map[string]any{"issuer": ownIssuer}}
	})
	s.waitForSucceeded(t)
	client := clientOf(t, s.admin(t))
	_ = t.Run("issuer", func(t *testing.T) { s.issues(t, client) }) &&
		t.Run("backup entry", func(t *testing.T) { s.backsUp(t, "local") }) &&
		t.Run("SSH key pair", func(t *testing.T) { s.rotatesSSH(t, client) }) &&
		t.Run("observability", s.rotatesPassword) &&
		t.Run("encryption key", func(t *testing.T) { s.rotatesEncryption(t, client) }) &&
		t.Run("rollout of workers", func(t *testing.T) { s.rollsOut(t, client) }) &&
		t.Run("move", func(t *testing.T) {
			nodes := s.nodes(t, client, 1)
			s.moveTo(t, "local-2")
			s.expectSeed(t, "local-2")
			if after := s.nodes(t, client, 1); !reflect.DeepEqual(nodes, after) {
				t.Errorf("the nodes were %v and are %v", nodes, after)
			}
			s.backsUp(t, "local-2")
			s.isConfidential(t, client)
		}) &&
		t.Run("deletion by force", s.forceDelete)
	l.checkNothingForbidden(t)
}

// operate requests an operation, and waits until it is done.
func (s *shoot) operate(t *testing.T, operation string) *unstructured.Unstructured {
	t.Helper()
	s.patch(t, fmt.Sprintf(`{"metadata":{"annotations":{"gardener.cloud/operation":%q}}}`, operation))
	return s.waitForSucceeded(t)
}

// rotateByCommand begins a step of a rotation with "gardenlite rotate", and returns when it is done.
func (s *shoot) rotateByCommand(t *testing.T, what string, flags ...string) result {
	t.Helper()
	return command(t, "", binary, append([]string{"rotate", what, "--data-dir", s.l.dir, "dev/" + s.name, "--wait"}, flags...)...).OK(t)
}

// issues: tokens of service accounts have the issuer that the Shoot specifies, and its status has it as well.
func (s *shoot) issues(t *testing.T, client kubernetes.Interface) {
	told := ""
	for _, address := range addresses(s.must(t)).([]any) {
		if a := address.(map[string]any); a["name"] == "service-account-issuer" {
			told = a["url"].(string)
		}
	}
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, created)
	must(t, err)
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token.Status.Token, ".")[1])
	must(t, err)
	claims := struct {
		Issuer string `json:"iss"`
	}{}
	must(t, json.Unmarshal(payload, &claims))
	if told != ownIssuer || claims.Issuer != ownIssuer {
		t.Errorf("the status tells of the issuer %q, the token of %q", told, claims.Issuer)
	}
	s.wantToken(t, token.Status.Token)
}

// backsUp: the Shoot has a BackupEntry in the bucket of a seed, and credentials for the bucket there.
func (s *shoot) backsUp(t *testing.T, seed string) {
	t.Helper()
	uid, _, _ := unstructured.NestedString(s.must(t).Object, "status", "uid")
	name := s.id() + "--" + uid
	bucket, err := s.l.at("seeds", "").Get(t.Context(), seed, metav1.GetOptions{})
	must(t, err)
	var in string
	eventually(t, waitTimeout, func(ctx context.Context) error { // it may be reconciled once more
		entry, err := s.l.at("backupentries", shootNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		in, _, _ = unstructured.NestedString(entry.Object, "spec", "bucketName")
		on, _, _ := unstructured.NestedString(entry.Object, "status", "seedName")
		if _, state, current := lastOperation(entry); in != string(bucket.GetUID()) || on != seed || state != "Succeeded" || !current {
			return fmt.Errorf("the BackupEntry is not in the bucket %s: %v, %v", bucket.GetUID(), entry.Object["spec"], entry.Object["status"])
		}
		return nil
	})
	if _, err := s.l.at("backupentries", shootNamespace).Get(t.Context(), "source-"+name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the source of the backups is still there: %v", err)
	}
	if secret, err := s.l.seeds[seed].CoreV1().Secrets(s.id()).Get(t.Context(), "etcd-backup", metav1.GetOptions{}); err != nil ||
		string(secret.Data["bucketName"]) != in {
		t.Errorf("the control plane has no credentials for the bucket: %v", err)
	}
}

// rotatesSSH: when the status shows the rotation, each node has the new key pair already.
func (s *shoot) rotatesSSH(t *testing.T, client kubernetes.Interface) {
	config, printed := "", ""
	if _, err := exec.LookPath("ssh"); err == nil {
		config = strings.TrimSpace(s.ssh(t, "--config").OK(t).Stdout)
		printed = strings.TrimSpace(s.ssh(t, "--bastion", filepath.Base(filepath.Dir(config)), "--print", "--", "hostname").OK(t).Stdout)
		s.operate(t, "rotate-ssh-keypair")
	}
	before := s.sshKey(t)
	s.rotateByCommand(t, "ssh-keypair").Shows(t, "has the new configuration (1 of 1)")
	after := s.sshKey(t)
	if string(before["id_rsa.pub"]) == string(after["id_rsa.pub"]) {
		t.Error("the key pair is the same")
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, node := range nodes.Items {
		secret, err := client.CoreV1().Secrets("kube-system").Get(
			t.Context(), node.Labels["worker.gardener.cloud/gardener-node-agent-secret-name"], metav1.GetOptions{})
		must(t, err)
		said, wanted := node.Annotations["checksum/cloud-config-data"], secret.Annotations["checksum/data-script"]
		key := base64.StdEncoding.EncodeToString(after["id_rsa.pub"])
		if config := string(secret.Data["osc.yaml"]); said != wanted ||
			!strings.Contains(config, strings.TrimSpace(string(after["id_rsa.pub"]))) && !strings.Contains(config, key[:200]) {
			t.Errorf("node %s has %s, not the new key in %s", node.Name, said, wanted)
		}
	}
	if len(nodes.Items) != 1 {
		t.Fatalf("%d nodes", len(nodes.Items))
	}
	if config != "" { // from two rotations ago: the key of the node is read when it is used
		for _, line := range []string{printed, "ssh -F " + config + " " + nodes.Items[0].Name + " hostname"} {
			command(t, "", "sh", "-c", line).OK(t).Shows(t, nodes.Items[0].Name)
		}
	}
}

// The Shoot's cluster has a confidential Secret and, once ConfigMaps are encrypted as well, a ConfigMap.
const (
	confidential     = "confidential"
	confidentialText = "not readable in any file"
)

// rotatesEncryption: confidential objects are encrypted at rest, and can be read after a rotation of the key as
// before.
func (s *shoot) rotatesEncryption(t *testing.T, client kubernetes.Interface) {
	key := func(name string) string {
		secret, err := s.l.seeds["local"].CoreV1().Secrets(s.id()).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		must(t, err)
		return string(secret.Data["key"])
	}
	_, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: confidential}, StringData: map[string]string{"text": confidentialText}}, created)
	must(t, err)
	s.patch(t, `{"spec":{"kubernetes":{"kubeAPIServer":{"encryptionConfig":{"resources":["configmaps"]}}}}}`)
	if at, _, _ := unstructured.NestedMap(s.waitForSucceeded(t).Object, "status", "credentials", "encryptionAtRest"); !reflect.DeepEqual(
		at["resources"], []any{"configmaps"}) {
		t.Errorf("the status tells of %v", at)
	}
	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: confidential}, Data: map[string]string{"text": confidentialText}}, created)
	must(t, err)
	before := key("kube-apiserver-etcd-encryption-key")
	s.rotateByCommand(t, "etcd-encryption-key")
	phase, _, _ := unstructured.NestedString(s.must(t).Object, "status", "credentials", "rotation", "etcdEncryptionKey", "phase")
	if after, old := key("kube-apiserver-etcd-encryption-key"),
		key("kube-apiserver-etcd-encryption-key.old"); phase != "Completed" || before == "" || after == before || old != "" {
		t.Errorf("the rotation is %q; the key was %q and is %q, the old one is %q", phase, before, after, old)
	}
	s.isConfidential(t, client)
}

// isConfidential: users read the confidential objects, and their text is not in the files of the datastore.
func (s *shoot) isConfidential(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	secret, err := client.CoreV1().Secrets("default").Get(t.Context(), confidential, metav1.GetOptions{})
	must(t, err)
	configMap, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), confidential, metav1.GetOptions{})
	must(t, err)
	if string(secret.Data["text"]) != confidentialText || configMap.Data["text"] != confidentialText {
		t.Errorf("what is read is %q and %q", secret.Data["text"], configMap.Data["text"])
	}
	found := map[string]bool{}
	must(t, filepath.WalkDir(filepath.Join(s.l.dir, "data", "shoots", s.id()), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreMissing(err)
		}
		data, err := os.ReadFile(name)
		for _, text := range []string{confidentialText, "k8s:enc:aescbc:v1:"} {
			found[text] = found[text] || bytes.Contains(data, []byte(text))
		}
		return ignoreMissing(err)
	}))
	if found[confidentialText] || !found["k8s:enc:aescbc:v1:"] {
		t.Errorf("the files of the datastore have %v", found)
	}
}

func (s *shoot) rotatesPassword(t *testing.T) {
	password := func() string {
		secret, err := s.l.kube.CoreV1().Secrets(shootNamespace).Get(t.Context(), s.name+".monitoring", metav1.GetOptions{})
		must(t, err)
		return string(secret.Data["password"])
	}
	before := password()
	s.rotateByCommand(t, "observability")
	if after := password(); before == "" || before == after {
		t.Error("the password is the same")
	}
}

// rollsOut: the named pool has another node afterwards, and keeps that node in the next operation.
func (s *shoot) rollsOut(t *testing.T, client kubernetes.Interface) {
	before := s.nodes(t, client, 1)
	obj := s.operate(t, "rollout-workers=worker")
	after := s.nodes(t, client, 1)
	if pending, _, _ := unstructured.NestedSlice(obj.Object, "status", "manualWorkerPoolRollout",
		"pendingWorkersRollouts"); before[0] == after[0] || len(pending) > 0 {
		t.Errorf("the node was %v and is %v, pending: %v", before, after, pending)
	}
	s.operate(t, "reconcile")
	if again := s.nodes(t, client, 1); again[0] != after[0] {
		t.Errorf("the node was %v and is %v without a request for another one", after, again)
	}
}

// forceDelete: a Shoot whose infrastructure cannot be deleted is gone once its user has confirmed that, and not
// before.
func (s *shoot) forceDelete(t *testing.T) {
	const force = `{"metadata":{"annotations":{"confirmation.gardener.cloud/force-deletion":"true"}}}`
	refused := func() {
		t.Helper()
		if _, err := s.l.at("shoots", shootNamespace).Patch(t.Context(), s.name, types.MergePatchType, []byte(force),
			metav1.PatchOptions{}); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Errorf("it may be deleted by force although it need not: %v", err)
		}
	}
	refused()
	s.patch(t, `{"metadata":{"annotations":{"gardenlite.dev/fail":"always:ERR_INFRA_DEPENDENCIES another shoot uses the network"}}}`)
	s.delete(t)
	if state := s.lastError(t, "ERR_INFRA_DEPENDENCIES"); state != "Failed" {
		t.Errorf("the Shoot is %s", state)
	}
	s.patch(t, force)
	s.waitGone(t)
	eventually(t, shootTimeout, func(ctx context.Context) error {
		entries, err := s.l.at("backupentries", shootNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, entry := range entries.Items {
			if strings.Contains(entry.GetName(), s.id()+"--") {
				return fmt.Errorf("a BackupEntry is left: %v", entry)
			}
		}
		for seed, client := range s.l.seeds {
			if _, err := client.CoreV1().Namespaces().Get(ctx, s.id(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the namespace is on seed %s: %v", seed, err)
			}
		}
		return nil
	})
}
