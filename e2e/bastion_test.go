package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// bastion is a Bastion of a test, and the key that opens it.
type bastion struct {
	s       *shoot
	name    string
	signer  ssh.Signer
	keyFile string
	address string
}

// newBastion creates a Bastion for the ranges given, and waits until it is ready.
func (s *shoot) newBastion(t *testing.T, name string, cidrs ...string) *bastion {
	t.Helper()
	b := s.wantBastion(t, name, nil, cidrs...)
	b.ready(t)
	return b
}

// wantBastion creates a Bastion for the ranges given, and does not wait.
func (s *shoot) wantBastion(t *testing.T, name string, annotations map[string]any, cidrs ...string) *bastion {
	t.Helper()
	b := &bastion{s: s, name: name, keyFile: filepath.Join(t.TempDir(), "key")}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	b.signer, err = ssh.NewSignerFromKey(key)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	must(t, err)
	must(t, os.WriteFile(b.keyFile, pem.EncodeToMemory(block), 0o600))
	object := meta("operations.gardener.cloud/v1alpha1", "Bastion", shootNamespace, name, map[string]any{"spec": b.spec(cidrs...)})
	object["metadata"].(map[string]any)["annotations"] = annotations
	s.l.create(t, "bastions", object)
	return b
}

func (b *bastion) spec(cidrs ...string) map[string]any {
	var ingress []any
	for _, cidr := range cidrs {
		ingress = append(ingress, map[string]any{"ipBlock": map[string]any{"cidr": cidr}})
	}
	return map[string]any{"shootRef": map[string]any{"name": b.s.name},
		"sshPublicKey": string(ssh.MarshalAuthorizedKey(b.signer.PublicKey())), "ingress": ingress}
}

// ready waits until the Bastion is ready, and remembers its address.
func (b *bastion) ready(t *testing.T) {
	t.Helper()
	b.says(t, "True", "", "")
	obj, err := b.s.l.at("bastions", shootNamespace).Get(t.Context(), b.name, metav1.GetOptions{})
	must(t, err)
	ip, _, _ := unstructured.NestedString(obj.Object, "status", "ingress", "ip")
	port := obj.GetAnnotations()["gardenlite.dev/ssh-port"]
	if port == "" {
		port = "22"
	}
	b.address = net.JoinHostPort(ip, port)
}

// says waits until the condition BastionReady has the status, the reason and, in its message or codes, the text; ""
// matches any.
func (b *bastion) says(t *testing.T, status, reason, text string) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		obj, err := b.s.l.at("bastions", shootNamespace).Get(t.Context(), b.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range conditionsOf(obj) {
			if c["type"] == "BastionReady" && c["status"] == status && (reason == "" || c["reason"] == reason) &&
				strings.Contains(fmt.Sprint(c["message"], c["codes"]), text) {
				return nil
			}
		}
		return fmt.Errorf("Bastion %s does not say %s, %s, %q: %v", b.name, status, reason, text, obj.Object["status"])
	})
}

// login logs in at an address, from a source address of this host ("" for any), with keys.
func login(ctx context.Context, address, source string, methods ...ssh.AuthMethod) (*ssh.Client, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	if source != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return handshake(conn, address, methods...)
}

func handshake(conn net.Conn, address string, methods ...ssh.AuthMethod) (*ssh.Client, error) {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{User: "gardener", Auth: methods,
		HostKeyCallback: ssh.InsecureIgnoreHostKey()}) //nolint:gosec // the tests look at keys themselves
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(c, channels, requests), nil
}

// nodeSigner returns the private key for the Shoot's nodes.
func (s *shoot) nodeSigner(t *testing.T) ssh.Signer {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(s.sshKey(t)["id_rsa"])
	must(t, err)
	return signer
}

// nodeAddress returns the name and the address of the Shoot's first node.
func (s *shoot) nodeAddress(t *testing.T) (name, address string) {
	t.Helper()
	nodes, err := clientOf(t, s.admin(t)).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == "InternalIP" {
			return nodes.Items[0].Name, a.Address
		}
	}
	t.Fatal("the node has no address")
	return "", ""
}

// bastions opens Bastions of a Shoot, goes through them as a user may, and tries what is forbidden.
func (l *landscape) bastions(t *testing.T) {
	s := l.newShoot(t, "harbour", nil)
	s.waitForSucceeded(t)
	node, address := s.nodeAddress(t)
	s.healthy(t)

	t.Run("nothing to go to", s.makesNoBastion)
	t.Run("a session on the node", func(t *testing.T) { s.throughBastion(t, node, address) })
	t.Run("a key added by hand", func(t *testing.T) { s.addsKey(t, node) })
	t.Run("gardenlite ssh", func(t *testing.T) {
		command(t, "", binary, "ssh", "--data-dir", l.dir, "dev/harbour", node, "--", "hostname").OK(t).Shows(t, node)
		if r := command(t, "", binary, "ssh", "--data-dir", l.dir, "dev/harbour", "--", "exit 7"); r.Code != 7 {
			t.Errorf("exit status %d, not 7: %s", r.Code, r.Stderr)
		}
		eventually(t, waitTimeout, func(context.Context) error { return l.noBastions(t) })
	})
	t.Run("how gardenlite ssh ends", func(t *testing.T) { s.clientEnds(t, address) })
	t.Run("a bastion that is kept", func(t *testing.T) { s.keepsBastion(t, node) })
	t.Run("gardenctl", func(t *testing.T) { s.asGardenctl(t, node, address) })
	t.Run("files", func(t *testing.T) { s.copiesFiles(t, node, address) })
	t.Run("what is forbidden", func(t *testing.T) { s.forbidden(t, address) })
	t.Run("ingress", func(t *testing.T) { s.ingressCounts(t) })
	t.Run("deletion cuts", func(t *testing.T) { s.deletionCuts(t) })
	t.Run("half-open connections", func(t *testing.T) { s.halfOpens(t) })
	t.Run("the key added by hand is gone", func(t *testing.T) { s.losesKey(t, node) })
	t.Run("SSH access off and on", func(t *testing.T) { s.closesSSH(t, node) })
	s.bastionRestarts(t)
	s.delete(t)
	s.waitGone(t)
	l.checkNothingForbidden(t)
	l.resetsKeys(t)
}

// ssh runs "gardenlite ssh" for the Shoot.
func (s *shoot) ssh(t *testing.T, args ...string) result {
	t.Helper()
	return command(t, "", binary, append([]string{"ssh", "--data-dir", s.l.dir, "dev/" + s.name}, args...)...)
}

// makesNoBastion: a node or a Bastion that does not exist is reported before a Bastion is created.
func (s *shoot) makesNoBastion(t *testing.T) {
	made := s.l.follow(t)
	for says, args := range map[string][]string{
		`no node "nowhere"`: {"nowhere"}, `there is no bastion "nowhere"`: {"--bastion", "nowhere"},
	} {
		if r := s.ssh(t, args...); r.Code != 1 || !strings.Contains(r.Stderr, says) {
			t.Errorf("%v: exit status %d, %s", args, r.Code, r.Stderr)
		}
	}
	s.newBastion(t, "first", "127.0.0.0/8").delete(t)
	made.of(t, "first") // the watch has reported all earlier Bastions by then
	made.mu.Lock()
	defer made.mu.Unlock()
	if len(made.last) != 1 {
		t.Errorf("there were %d Bastions, not one", len(made.last))
	}
}

// keepsBastion: a Bastion that is kept can be used again, which keeps it alive.
func (s *shoot) keepsBastion(t *testing.T, node string) {
	s.ssh(t, node, "--keep-bastion", "--", "hostname").OK(t).Shows(t, node)
	bastions := s.l.at("bastions", shootNamespace)
	kept, err := bastions.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(kept.Items) != 1 {
		t.Fatalf("%d Bastions are there, not one", len(kept.Items))
	}
	name, first := kept.Items[0].GetName(), kept.Items[0].Object["status"].(map[string]any)["lastHeartbeatTimestamp"]
	eventually(t, shootTimeout, func(context.Context) error { // the times have whole seconds
		s.ssh(t, node, "--bastion", name, "--", "hostname").OK(t).Shows(t, node)
		now, err := bastions.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && now.Object["status"].(map[string]any)["lastHeartbeatTimestamp"] == first {
			err = fmt.Errorf("the last heartbeat of Bastion %s is still of %s", name, first)
		}
		return err
	})
	must(t, bastions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	eventually(t, shootTimeout, func(context.Context) error { return s.l.noBastions(t) })
}

// authorizedKeys is the file with the keys that can log in to a node.
const authorizedKeys = "/home/gardener/.ssh/authorized_keys"

// addsKey adds a key on a node, as its user can.
func (s *shoot) addsKey(t *testing.T, node string) {
	s.ssh(t, node, "--", "echo 'ssh-ed25519 AAAA stranger' | sudo tee -a "+authorizedKeys+" > /dev/null && sudo cat "+authorizedKeys).OK(
		t).Shows(t, "stranger")
}

// losesKey: some time later, without a rotation, the file has only the key of the Shoot.
func (s *shoot) losesKey(t *testing.T, node string) {
	eventually(t, shootTimeout, func(context.Context) error {
		keys, want := s.ssh(t, node, "--", "sudo cat "+authorizedKeys).OK(t).Stdout, string(s.sshKey(t)["id_rsa.pub"])
		if strings.TrimSpace(keys) != strings.TrimSpace(want) {
			return fmt.Errorf("who may log in: %s", keys)
		}
		return nil
	})
}

// resetsKeys: a reset deletes all that the landscape has made, the private keys of bastions, too.
func (l *landscape) resetsKeys(t *testing.T) {
	t.Helper()
	if keys, err := filepath.Glob(filepath.Join(l.dir, "ssh", "*", "bastion.key")); err != nil || len(keys) == 0 {
		t.Errorf("there is no private key to be deleted: %v", err)
	}
	l.stop(t)
	for range 2 { // the second time there is nothing
		gardenlite(t, l.dir, "reset", "--yes").OK(t)
	}
	if left, err := os.ReadDir(l.dir); !os.IsNotExist(err) {
		t.Errorf("after a reset there is %v, %v", left, err)
	}
}

// closesSSH: without SSH access no client can connect. When it is enabled again, connections work with other keys.
func (s *shoot) closesSSH(t *testing.T, node string) {
	before := s.sshKey(t)
	session := s.runsSSH(t)
	s.patch(t, `{"spec":{"provider":{"workersSettings":{"sshAccess":{"enabled":false}}}}}`)
	select {
	case <-session.ended:
	case <-time.After(shootTimeout):
		t.Fatal("a session goes on although there is no SSH access")
	}
	s.waitForSucceeded(t)
	if err := s.l.noBastions(t); err != nil {
		t.Error(err)
	}
	if _, err := s.l.kube.CoreV1().Secrets(shootNamespace).Get(t.Context(), s.name+".ssh-keypair",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the key pair is still there: %v", err)
	}
	if r := command(t, "", binary, "ssh", "--data-dir", s.l.dir, "dev/"+s.name, "--", "true"); r.Code != 1 ||
		!strings.Contains(r.Stderr, "SSH is disabled") {
		t.Errorf("exit status %d, %s", r.Code, r.Stderr)
	}
	s.patch(t, `{"spec":{"provider":{"workersSettings":{"sshAccess":{"enabled":true}}}}}`)
	s.waitForSucceeded(t)
	if after := s.sshKey(t); string(after["id_rsa.pub"]) == string(before["id_rsa.pub"]) {
		t.Error("the key pair is the one of before")
	}
	command(t, "", binary, "ssh", "--data-dir", s.l.dir, "dev/"+s.name, node, "--", "hostname").OK(t).Shows(t, node)
}

func (l *landscape) noBastions(t *testing.T) error {
	left, err := l.at("bastions", shootNamespace).List(t.Context(), metav1.ListOptions{})
	if err == nil && len(left.Items) > 0 {
		err = fmt.Errorf("%d Bastions are left", len(left.Items))
	}
	return err
}

func (s *shoot) throughBastion(t *testing.T, node, address string) {
	b := s.newBastion(t, "honest", "127.0.0.0/8")
	host, port, err := net.SplitHostPort(b.address)
	must(t, err)
	command(t, "", kubectlBinary, "--kubeconfig", filepath.Join(s.l.dir, "kubeconfig"), "-n", shootNamespace, "get", "bastions", "-o",
		"wide").OK(t).Shows(t, "PORT", host, port)
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	defer client.Close()
	conn, err := client.Dial("tcp", net.JoinHostPort(address, "22"))
	must(t, err)
	inner, err := handshake(conn, address, ssh.PublicKeys(s.nodeSigner(t)))
	must(t, err)
	defer inner.Close()
	session, err := inner.NewSession()
	must(t, err)
	output, err := session.Output("hostname; id -un; sudo id -u; ls /etc/systemd/system")
	if err != nil || !strings.HasPrefix(string(output), node+"\ngardener\n0\n") || !strings.Contains(string(output), "kubelet.service") {
		t.Errorf("on the node: %q, %v", output, err)
	}
	session, err = inner.NewSession()
	must(t, err)
	var exit *ssh.ExitError
	if err := session.Run("exit 3"); !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Errorf("the exit status is lost: %v", err)
	}
	if program, err := exec.LookPath("ssh"); err == nil {
		s.withOpenSSH(t, program, b, node, address)
	}
	b.delete(t)
}

// withOpenSSH does the same with the real client: a command by ProxyCommand, and a shell with a terminal by ProxyJump.
func (s *shoot) withOpenSSH(t *testing.T, program string, b *bastion, node, address string) {
	t.Helper()
	dir := t.TempDir()
	nodeKey, config := filepath.Join(dir, "node"), filepath.Join(dir, "config")
	must(t, os.WriteFile(nodeKey, s.sshKey(t)["id_rsa"], 0o600))
	host, port, err := net.SplitHostPort(b.address)
	must(t, err)
	must(t, os.WriteFile(config, []byte(fmt.Sprintf(`
Host *
  User gardener
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  BatchMode yes
  IdentitiesOnly yes
Host bastion
  HostName %s
  Port %s
  IdentityFile %s
Host jump command
  HostName %s
  IdentityFile %s
Host jump
  ProxyJump bastion
Host command
  ProxyCommand %s -F %s -W %%h:%%p bastion
`, host, port, b.keyFile, address, nodeKey, program, config)), 0o600))
	output, err := exec.CommandContext(t.Context(), program, "-F", config, "command", "hostname").CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != node {
		t.Errorf("OpenSSH with ProxyCommand: %q, %v", output, err)
	}
	shell := exec.CommandContext(t.Context(), program, "-F", config, "-tt", "jump")
	shell.Stdin = strings.NewReader("[ -t 0 ] && echo terminal-$((6*7)); hostname; exit 4\r")
	output, err = shell.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 4 || !strings.Contains(string(output), "terminal-42\r\n"+node+"\r\n") {
		t.Errorf("OpenSSH with ProxyJump and a terminal: %q, %v", output, err)
	}
}

func (b *bastion) delete(t *testing.T) {
	t.Helper()
	must(t, b.s.l.at("bastions", shootNamespace).Delete(t.Context(), b.name, metav1.DeleteOptions{}))
	eventually(t, shootTimeout, func(context.Context) error {
		if _, err := b.s.l.at("bastions", shootNamespace).Get(t.Context(), b.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("Bastion %s is there: %v", b.name, err)
		}
		return nil
	})
	if answers(b.address) {
		t.Errorf("something listens at %s, and the Bastion has gone", b.address)
	}
}

func (s *shoot) forbidden(t *testing.T, address string) {
	b, other := s.newBastion(t, "one", "127.0.0.0/8"), s.newBastion(t, "two", "127.0.0.0/8")
	for name, methods := range map[string][]ssh.AuthMethod{
		"nothing": nil, "a password": {ssh.Password("gardener")}, "the key of another bastion": {ssh.PublicKeys(other.signer)},
		"the key of the nodes": {ssh.PublicKeys(s.nodeSigner(t))},
	} {
		if client, err := login(t.Context(), b.address, "", methods...); err == nil {
			_ = client.Close()
			t.Errorf("the bastion lets in who has %s", name)
		}
	}
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	defer client.Close()
	host, port, err := net.SplitHostPort(strings.TrimPrefix(s.l.config(t).Host, "https://"))
	must(t, err)
	for _, target := range []string{net.JoinHostPort(address, "80"), net.JoinHostPort(host, port), "127.0.0.1:22",
		"localhost:22", b.address, other.address, "10.10.250.250:22", "example.com:22"} {
		if conn, err := client.Dial("tcp", target); err == nil {
			_ = conn.Close()
			t.Errorf("the bastion forwards to %s", target)
		}
	}
	if listener, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = listener.Close()
		t.Error("the bastion listens for others")
	}
	conn, err := client.Dial("tcp", net.JoinHostPort(address, "22"))
	must(t, err)
	if inner, err := handshake(conn, address, ssh.PublicKeys(b.signer)); err == nil {
		_ = inner.Close()
		t.Error("the node lets in who has the bastion's key")
	}
	b.delete(t)
	other.delete(t)
}

// ingressCounts: only clients in an allowed range are let in, and they are cut when the range changes.
func (s *shoot) ingressCounts(t *testing.T) {
	b := s.newBastion(t, "narrow", "127.0.0.2/32")
	if client, err := login(t.Context(), b.address, "127.0.0.3", ssh.PublicKeys(b.signer)); err == nil {
		_ = client.Close()
		t.Error("a client outside of the range is admitted")
	}
	client, err := login(t.Context(), b.address, "127.0.0.2", ssh.PublicKeys(b.signer))
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()
	_, err = s.l.at("bastions", shootNamespace).Patch(t.Context(), b.name, types.MergePatchType,
		[]byte(`{"spec":{"ingress":[{"ipBlock":{"cidr":"127.0.0.3/32"}}]}}`), metav1.PatchOptions{})
	must(t, err)
	select {
	case <-ended:
	case <-time.After(shootTimeout):
		t.Fatal("a session goes on from an address that is not allowed any more")
	}
	client, err = login(t.Context(), b.address, "127.0.0.3", ssh.PublicKeys(b.signer))
	must(t, err)
	_ = client.Close()
	b.delete(t)
}

func (s *shoot) deletionCuts(t *testing.T) {
	b := s.newBastion(t, "cut", "127.0.0.0/8")
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()
	b.delete(t)
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Logf("cut with %v", err)
		}
	case <-time.After(shootTimeout):
		t.Error("the session goes on, and the Bastion has gone")
	}
}

// bastionRestarts: a Bastion keeps its address and its host key when the landscape restarts.
func (s *shoot) bastionRestarts(t *testing.T) {
	b := s.newBastion(t, "stays", "127.0.0.0/8")
	key := func() (found []byte) {
		t.Helper()
		eventually(t, shootTimeout, func(ctx context.Context) error {
			conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", b.address)
			if err != nil {
				return err
			}
			defer conn.Close()
			c, _, _, err := ssh.NewClientConn(conn, b.address,
				&ssh.ClientConfig{User: "gardener", Auth: []ssh.AuthMethod{ssh.PublicKeys(b.signer)}, Timeout: 10 * time.Second,
					HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
						found = key.Marshal()
						return nil
					}})
			if err == nil {
				_ = c.Close()
			}
			return err
		})
		return found
	}
	before, taken := key(), s.newBastion(t, "taken", "127.0.0.0/8")
	s.l.stop(t)
	if answers(b.address) {
		t.Error("the landscape is down, and the bastion listens")
	}
	other, err := net.Listen("tcp", taken.address)
	must(t, err)
	defer other.Close()
	s.l.up(t)
	taken.moves(t, other)
	if after := key(); !bytes.Equal(before, after) {
		t.Error("the host key has changed")
	}
	b.delete(t)
}
