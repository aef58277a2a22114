package sshclient

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

func sampleWay(t *testing.T, dir string) *OpenSSH {
	t.Helper()
	pair, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	node := Node{Name: "node-1", Address: "10.0.0.2", Ready: true}
	return &OpenSSH{Dir: dir, Helper: []string{"/my bin/gardenlite", "ssh-helper"}, Nodes: []Node{node, {Name: "new"}}, Route: Route{
		Bastion: &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "cli-b", UID: "uid",
			Annotations: map[string]string{annotationSSHPort: "2222"}},
			Status: operationsv1alpha1.BastionStatus{Ingress: &corev1.LoadBalancerIngress{IP: "127.0.0.1"}}},
		Key: pair, Node: node, NodeKeys: [][]byte{[]byte("new"), []byte("old")}, Network: "shoot--dev--x",
	}}
}

func TestCommandLines(t *testing.T) {
	o := sampleWay(t, "/d a%h")
	line := o.ProxyCommand([]string{"-t"}, []string{"echo", "$HOME"})
	want := []string{"ssh", "-F", "/d a%h/config", "-o", `ProxyCommand=ssh -F '/d a%%h/config' -W [%h]:%p cli-b`, "-t",
		"node-1", "echo", "$HOME"}
	if strings.Join(line, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(line, "\n"), strings.Join(want, "\n"))
	}
	if got := strings.Join(o.ProxyJump(nil, nil), "|"); got != "ssh|-F|/d a%h/config|-J|cli-b|node-1" {
		t.Error(got)
	}
	if Quote("a'b $c") != `'a'\''b $c'` || Quote("") != "''" || Quote("a=b") != "a=b" {
		t.Error("quoting")
	}
}

// TestHostileNames checks that what a gardenlet or a node says does not become an option of ssh.
func TestHostileNames(t *testing.T) {
	const command = "\nMatch exec \"touch /tmp/owned\""
	for name, change := range map[string]func(*OpenSSH){
		"technical ID":           func(o *OpenSSH) { o.Network += command },
		"name of a node":         func(o *OpenSSH) { o.Nodes[1].Name += command },
		"node that is an option": func(o *OpenSSH) { o.Node.Name = "-oProxyCommand=id" },
		"address of a node":      func(o *OpenSSH) { o.Nodes[0].Address = "10.0.0.2" + command },
		"zone of a node":         func(o *OpenSSH) { o.Nodes[0].Address = "fe80::1%" + command },
		"zone of the bastion":    func(o *OpenSSH) { o.Bastion.Status.Ingress.IP = "fe80::1%" + command },
		"host of the bastion": func(o *OpenSSH) {
			o.Bastion.Status.Ingress = &corev1.LoadBalancerIngress{Hostname: "a" + command}
		},
		"port of the bastion":    func(o *OpenSSH) { o.Bastion.Annotations[annotationSSHPort] = "22" + command },
		"name of the bastion":    func(o *OpenSSH) { o.Bastion.Name += command },
		"project of the bastion": func(o *OpenSSH) { o.Bastion.Namespace += command },
		"key file":               func(o *OpenSSH) { o.Key.File = "/a" + command },
		"folder":                 func(o *OpenSSH) { o.Dir += command; _ = os.MkdirAll(o.Dir, 0o700) },
		"program":                func(o *OpenSSH) { o.Helper[0] += "\"" },
	} {
		t.Run(name, func(t *testing.T) {
			o := sampleWay(t, t.TempDir())
			change(o)
			if err := o.Write(); err == nil {
				t.Error("is written")
			}
			if _, err := os.Stat(o.ConfigFile()); err == nil {
				t.Error("there is a configuration")
			}
		})
	}
}

// TestConfig verifies that ssh gets the current keys of the nodes before it uses them, and connects through the proxy,
// which keeps the bastion alive.
func TestConfig(t *testing.T) {
	o := sampleWay(t, "/d a%h")
	o.Key.File = "/d a%h/bastion.key"
	got, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	want := `# The way to the nodes of shoot--dev--x, by the bastion cli-b.
Match originalhost node-1,new exec "'/my bin/gardenlite' ssh-helper keys garden-dev/cli-b"
Host cli-b
  HostName 127.0.0.1
  Port 2222
  User gardener
  IdentityFile "/d a%%h/bastion.key"
  IdentitiesOnly yes
  UserKnownHostsFile "/d a%%h/known_hosts"
  HostKeyAlias bastion-uid
  StrictHostKeyChecking accept-new
  ProxyCommand '/my bin/gardenlite' ssh-helper proxy garden-dev/cli-b %h %p
Host node-1
  HostName 10.0.0.2
  ProxyJump cli-b
  User gardener
  IdentityFile "/d a%%h/node.key"
  IdentityFile "/d a%%h/node.old.key"
  IdentitiesOnly yes
  UserKnownHostsFile "/d a%%h/known_hosts"
  HostKeyAlias node-1.shoot--dev--x
  StrictHostKeyChecking accept-new
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFiles(t *testing.T) {
	home := t.TempDir()
	dir := statedir.BastionDir(home, "cli-b")
	o := sampleWay(t, dir)
	kept := NewBastion(sampleShoot(), "key", nil)
	c := fakeGarden(t, clocktesting.NewFakeClock(time.Now()), nil, kept)
	for _, name := range []string{"cli-former", kept.Name} {
		if err := os.MkdirAll(statedir.BastionDir(home, name), 0o700); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-25 * time.Hour) // a Bastion may live for 30 days
		if err := os.Chtimes(statedir.BastionDir(home, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{c.MakeDir(t.Context(), dir), o.Write()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(statedir.BastionDir(home, "cli-former")); err == nil {
		t.Error("the folder of a bastion stays that the garden does not have any more")
	}
	if _, err := os.Stat(statedir.BastionDir(home, kept.Name)); err != nil {
		t.Errorf("the keys of a bastion that still lives are gone: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	for name, want := range map[string]string{"bastion.key": string(o.Key.PEM), "node.key": "new", "node.old.key": "old", "config": ""} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || want != "" && string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	key, err := ReadStoredKey(dir)
	if err != nil || key.Public != o.Key.Public || key.Signer == nil {
		t.Errorf("%+v, %v", key, err)
	}
	if err := WriteNodeKeys(dir, [][]byte{[]byte("only")}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "node.old.key")); err != nil || string(got) != "only" {
		t.Errorf("a key that was rotated stays: %q, %v", got, err)
	}
}

// TestProxy verifies that the proxy passes data on in both directions, and sends a heartbeat meanwhile.
func TestProxy(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	bastion := NewBastion(sampleShoot(), "key", nil)
	c := fakeGarden(t, clocktesting.NewFakeClock(time.Now()), nil, bastion)
	alive := func() bool {
		now := &operationsv1alpha1.Bastion{}
		return c.garden.Get(t.Context(), client.ObjectKeyFromObject(bastion), now) == nil &&
			now.Annotations["gardener.cloud/operation"] == "keepalive"
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request, _ := io.ReadAll(conn)
		for !alive() && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		_, _ = conn.Write(append(request, " and back"...))
	}()
	var out bytes.Buffer
	err = c.Proxy(t.Context(), client.ObjectKeyFromObject(bastion), listener.Addr().String(), strings.NewReader("there"),
		&out, func(err error) { t.Error(err) })
	if err != nil || out.String() != "there and back" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestHostKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	first, second := newHostKey(t), newHostKey(t)
	for _, name := range []string{file, ""} {
		h, err := NewHostKeys(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"a", "b", "a"} {
			if err := h.Check(host)("", &net.TCPAddr{}, first); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if err := h.Check("a")("", &net.TCPAddr{}, second); err == nil || !strings.Contains(err.Error(), "another host key") {
			t.Errorf("%q: %v", name, err)
		}
	}
	again, err := NewHostKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Check("node\n@cert-authority * ssh-ed25519 x")("", &net.TCPAddr{}, first); err == nil {
		t.Error("a name with a line break is kept")
	}
	if again.Check("b")("", &net.TCPAddr{}, first) != nil || again.Check("b")("", &net.TCPAddr{}, second) == nil {
		t.Error("the file does not keep keys")
	}
	if err := os.WriteFile(file, []byte("a ssh-ed25519 nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewHostKeys(file); err == nil {
		t.Error("a broken file was taken for an empty one")
	}
}

func newHostKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	pair, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	return pair.Signer.PublicKey()
}

func TestReadKeyPair(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	pair, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	private := write("id", string(pair.PEM))
	public := write("id.pub", pair.Public+" me\n")
	other := write("other.pub", line(newHostKey(t)))
	for name, test := range map[string]struct {
		public, private string
		signs           bool
		says            string
	}{
		"private":    {"", private, true, ""},
		"public":     {public, "", true, ""},
		"both":       {public, private, true, ""},
		"agent":      {other, "", false, ""},
		"strangers":  {other, private, false, "does not belong"},
		"missing":    {"", filepath.Join(dir, "none"), false, "no such file"},
		"mixed up":   {private, "", false, "no public key"},
		"mixed up 2": {"", public, false, "no private key"},
	} {
		got, err := ReadKeyPair(test.public, test.private)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || err == nil &&
			(got.Signer != nil) != test.signs {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestParseForward(t *testing.T) {
	for text, want := range map[string]Forward{
		"2222:10.0.0.3:22":      {"127.0.0.1:2222", "10.0.0.3:22"},
		"0:localhost:80":        {"127.0.0.1:0", "localhost:80"},
		"localhost:80:x:81":     {"127.0.0.1:80", "x:81"},
		"[::1]:80:[fd00::2]:81": {"[::1]:80", "[fd00::2]:81"},
		"0.0.0.0:80:x:81":       {},
		"80:x":                  {},
		"80:x:0":                {},
		"x:y:80":                {},
		"80::80":                {},
		"[::1:80:x:81":          {},
		"127.0.0.1:80:x:81:y":   {},
	} {
		if got, err := ParseForward(text); got != want || (err == nil) != (want != Forward{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
