package sshclient

import (
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
)

func sampleWay(t *testing.T, dir string) *OpenSSH {
	t.Helper()
	pair, err := NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	node := Node{Name: "node-1", Address: "10.0.0.2", Ready: true}
	return &OpenSSH{Dir: dir, Nodes: []Node{node, {Name: "new"}}, Route: Route{
		Bastion: &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Name: "cli-b", UID: "uid", Annotations: map[string]string{annotationSSHPort: "2222"}},
			Status: operationsv1alpha1.BastionStatus{Ingress: &corev1.LoadBalancerIngress{IP: "127.0.0.1"}}},
		Key: pair, Node: node, NodeKeys: [][]byte{[]byte("new"), []byte("old")}, Network: "shoot--dev--x",
	}}
}

func TestCommandLines(t *testing.T) {
	o := sampleWay(t, "/d a%h")
	o.Key.File = "/d a%h/bastion.key"
	line, err := o.ProxyCommand([]string{"-t"}, []string{"echo", "$HOME"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ssh", "-F", "none", "-o", "User=gardener", "-o", `IdentityFile="/d a%%h/node.key"`, "-o", `IdentityFile="/d a%%h/node.old.key"`,
		"-o", "IdentitiesOnly=yes", "-o", `UserKnownHostsFile="/d a%%h/known_hosts"`, "-o", "HostKeyAlias=node-1.shoot--dev--x", "-o", "StrictHostKeyChecking=accept-new",
		"-o", `ProxyCommand=ssh -F none -o User=gardener -o 'IdentityFile="/d a%%h/bastion.key"' -o IdentitiesOnly=yes -o 'UserKnownHostsFile="/d a%%h/known_hosts"' -o HostKeyAlias=bastion-uid -o StrictHostKeyChecking=accept-new -p 2222 -W '[%h]:%p' 127.0.0.1`,
		"-t", "10.0.0.2", "echo", "$HOME"}
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

func TestFiles(t *testing.T) {
	home := t.TempDir()
	dir := Dir(home, "cli-b")
	o := sampleWay(t, dir)
	now := time.Now()
	former := Dir(home, "cli-former")
	if err := os.MkdirAll(former, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(former, now, now.Add(-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{MakeDir(dir, now), o.Write()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(former); err == nil {
		t.Error("the folder of a bastion that cannot live any more stays")
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	for _, name := range []string{"bastion.key", "node.key", "node.old.key", "config"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	kept, err := KeptKey(dir)
	if err != nil || kept.Public != o.Key.Public || kept.Signer == nil {
		t.Errorf("%+v, %v", kept, err)
	}
	config, err := os.ReadFile(o.ConfigFile())
	if err != nil || !strings.Contains(string(config), "Host cli-b\n  HostName 127.0.0.1\n  Port 2222\n") ||
		!strings.Contains(string(config), "Host node-1\n  HostName 10.0.0.2\n  ProxyJump cli-b\n") || strings.Contains(string(config), "Host new") {
		t.Errorf("%s, %v", config, err)
	}
	o.NodeKeys = o.NodeKeys[:1]
	if err := o.Write(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node.old.key")); err == nil {
		t.Error("a key that was rotated stays")
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
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || err == nil && (got.Signer != nil) != test.signs {
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
