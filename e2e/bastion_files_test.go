package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	wire "encoding/binary"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// cargoSize is the size of the copied file, in bytes.
	cargoSize = 5 << 20
	cargoMode = 0o640
)

// cargoTime is the modification time of the copied file.
var cargoTime = time.Unix(1_700_000_000, 0)

// cargo is a file that is copied to a node and back, and the way to the node.
type cargo struct {
	s             *shoot
	node, address string
	file          string
	content       []byte
	config        string // of OpenSSH
}

// copiesFiles copies a file to a node and back through Bastions, with the SSH library and with OpenSSH's programs.
func (s *shoot) copiesFiles(t *testing.T, node, address string) {
	c := &cargo{s: s, node: node, address: address, file: filepath.Join(t.TempDir(), "a file"), content: make([]byte, cargoSize)}
	_, _ = rand.Read(c.content)
	must(t, os.WriteFile(c.file, c.content, cargoMode))
	must(t, os.Chtimes(c.file, cargoTime, cargoTime))
	t.Run("library", c.byLibrary)
	if _, err := exec.LookPath("scp"); err != nil {
		return
	}
	c.config = strings.TrimSpace(c.run(t, binary, "ssh", "--data-dir", s.l.dir, "dev/"+s.name, node, "--config").OK(t).Stdout)
	t.Run("scp", c.thereAndBack)
	t.Run("folder", c.folder)
	t.Run("ProxyCommand", c.byProxyCommand)
	t.Run("sftp", c.sftp)
	c.keepsAlive(t)
}

// keepsAlive expects that sessions of OpenSSH through an existing Bastion prolong its life.
func (c *cargo) keepsAlive(t *testing.T) {
	name := filepath.Base(filepath.Dir(c.config))
	first := ""
	eventually(t, shootTimeout, func(context.Context) error {
		c.run(t, "ssh", "-F", c.config, c.node, "true").OK(t)
		bastion, err := c.s.l.at("bastions", shootNamespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		beat, _, _ := unstructured.NestedString(bastion.Object, "status", "lastHeartbeatTimestamp")
		if first == "" {
			first = beat
		}
		if beat == first {
			return fmt.Errorf("the last heartbeat of Bastion %s is still of %s", name, beat)
		}
		return nil
	})
}

// run runs a program with a longer timeout than others.
func (c *cargo) run(t *testing.T, program string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", filepath.Base(program), args, err)
	}
	return result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// is expects that a file on this host has the content that was sent and, with kept, its mode and time.
func (c *cargo) is(t *testing.T, name string, kept bool) {
	t.Helper()
	content, err := os.ReadFile(name)
	must(t, err)
	if !bytes.Equal(content, c.content) {
		t.Errorf("%d bytes have come back, not the %d that were sent", len(content), len(c.content))
	}
	info, err := os.Stat(name)
	must(t, err)
	if kept && (info.Mode() != cargoMode || !info.ModTime().Equal(cargoTime)) {
		t.Errorf("the file has mode %v and is of %v", info.Mode(), info.ModTime())
	}
}

// thereAndBack copies the file to the node and back with scp. The original protocol of scp is refused.
func (c *cargo) thereAndBack(t *testing.T) {
	const name = "by-scp"
	scp := func(args ...string) result {
		t.Helper()
		return c.run(t, "scp", append([]string{"-F", c.config, "-p"}, args...)...)
	}
	scp(c.file, c.node+":"+name).OK(t)
	if got := c.run(t, "ssh", "-F", c.config, c.node, "stat -c '%a %U %s %Y' "+name).OK(t).Stdout; got != fmt.Sprintf(
		"%o gardener %d %d\n", cargoMode, cargoSize, cargoTime.Unix()) {
		t.Errorf("the file on the node: %q", got)
	}
	back := filepath.Join(t.TempDir(), "back")
	scp(c.node+":"+name, back).OK(t)
	c.is(t, back, true)
	for _, forbidden := range []string{"/etc/passwd", "/root/" + name, "/usr/bin/" + name} {
		if r := scp(c.file, c.node+":"+forbidden); r.Code == 0 || !strings.Contains(r.Stderr, "ermission denied") {
			t.Errorf("writing %s: status %d, %s", forbidden, r.Code, r.Stderr)
		}
	}
	if r := scp(c.node+":/etc/shadow", back); r.Code == 0 {
		t.Error("the user gets /etc/shadow")
	}
	for _, way := range [][]string{{c.file, c.node + ":old"}, {c.node + ":" + name, back}} {
		if r := scp(append([]string{"-O"}, way...)...); r.Code == 0 || !strings.Contains(r.Stdout+r.Stderr, "scp without -O") {
			t.Errorf("scp -O: status %d, %s%s", r.Code, r.Stdout, r.Stderr)
		}
	}
}

// folder copies a folder to the node, and back.
func (c *cargo) folder(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "tree"), filepath.Join(t.TempDir(), "tree")
	must(t, os.MkdirAll(filepath.Join(from, "in", "side"), 0o750))
	for _, name := range []string{"in/side/a", "in/b", "c d"} {
		must(t, os.WriteFile(filepath.Join(from, name), []byte(name), 0o600))
	}
	c.run(t, "scp", "-F", c.config, "-r", from, c.node+":one").OK(t)
	c.run(t, "scp", "-F", c.config, "-r", c.node+":one", to).OK(t)
	for _, name := range []string{"in/side/a", "in/b", "c d"} {
		if data, err := os.ReadFile(filepath.Join(to, name)); string(data) != name {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// byProxyCommand makes scp connect with the options that "gardenlite ssh --print" prints for ssh.
func (c *cargo) byProxyCommand(t *testing.T) {
	name := filepath.Base(filepath.Dir(c.config))
	line := strings.TrimSpace(
		c.run(t, binary, "ssh", "--data-dir", c.s.l.dir, "dev/"+c.s.name, c.node, "--bastion", name, "--print").OK(t).Stdout)
	options, ok := strings.CutPrefix(strings.TrimSuffix(line, " "+c.node), "ssh ")
	if !ok || !strings.Contains(options, "ProxyCommand=") {
		t.Fatalf("this is no command line of ssh with a ProxyCommand: %s", line)
	}
	back := filepath.Join(t.TempDir(), "back")
	script := fmt.Sprintf("set -e\nscp -q %[1]s '%[2]s' %[3]s:by-command\nscp -q %[1]s %[3]s:by-command '%[4]s'\n",
		options, c.file, c.node, back)
	c.run(t, "sh", "-c", script).OK(t)
	c.is(t, back, false)
}

// sftp runs common commands of sftp.
func (c *cargo) sftp(t *testing.T) {
	dir := t.TempDir()
	batch := filepath.Join(dir, "batch")
	must(t, os.WriteFile(batch, []byte(strings.NewReplacer("FILE", c.file, "BACK", filepath.Join(dir, "back")).Replace(`pwd
mkdir sub
cd sub
put -p "FILE" up
ls -l
ln -s up link
ls -l
rename up down
-put "FILE" /etc/passwd
-rmdir ../sub
get -p down "BACK"
chmod 600 down
ls -l
rm link
rm down
rmdir ../sub
`)), 0o600))
	r := c.run(t, "sftp", "-F", c.config, "-b", batch, c.node).OK(t)
	r.Shows(t, "Remote working directory: /home/gardener\n", "-rw-r-----    1 gardener gardener  5242880 Nov 14  2023 up\n",
		"lrwxrwxrwx    1 gardener gardener        2 ", "-rw-------    1 gardener gardener  5242880 Nov 14  2023 down\n")
	if strings.Count(r.Stderr, "Permission denied") != 1 || !strings.Contains(r.Stderr, "Failure") {
		t.Errorf("what is not possible is not said: %s", r.Stderr)
	}
	c.is(t, filepath.Join(dir, "back"), true)
}

// byLibrary copies the file with golang.org/x/crypto/ssh, and expects that neither the bastion nor the node opens
// files of this host or of root.
func (c *cargo) byLibrary(t *testing.T) {
	b := c.s.newBastion(t, "files", "127.0.0.0/8")
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	defer client.Close()
	conn, err := client.Dial("tcp", net.JoinHostPort(c.address, "22"))
	must(t, err)
	inner, err := handshake(conn, c.address, ssh.PublicKeys(c.s.nodeSigner(t)))
	must(t, err)
	defer inner.Close()

	f := newFileSession(t, inner)
	f.put("by-sftp", c.content)
	if got := f.get("by-sftp"); !bytes.Equal(got, c.content) {
		t.Errorf("by sftp: %d bytes have come back, not the %d that were sent", len(got), len(c.content))
	}
	for where, machine := range map[string]*ssh.Client{"the bastion": client, "the node": inner} {
		f := newFileSession(t, machine)
		for _, name := range []string{filepath.Join(c.s.l.dir, "kubeconfig"), "../../../../../.." + c.file,
			"/proc/self/cwd/go.mod", "/etc/shadow", "/root/.ssh/authorized_keys"} {
			if code := f.refusal(name); code != 2 && code != 3 {
				t.Errorf("%s opens %s: %d", where, name, code)
			}
		}
	}
	b.delete(t)
}

// fileSession is a minimal client of SFTP.
type fileSession struct {
	t       *testing.T
	channel ssh.Channel
}

func newFileSession(t *testing.T, client *ssh.Client) *fileSession {
	t.Helper()
	channel, requests, err := client.OpenChannel("session", nil)
	must(t, err)
	go ssh.DiscardRequests(requests)
	t.Cleanup(func() { _ = channel.Close() })
	if ok, err := channel.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{"sftp"})); !ok || err != nil {
		t.Fatalf("there is no sftp: %v, %v", ok, err)
	}
	f := &fileSession{t, channel}
	f.ask(1, struct{ Version uint32 }{3})
	return f
}

// ask sends a packet, and returns the answer's type and its content after the request ID.
func (f *fileSession) ask(kind byte, fields any) (byte, []byte) {
	f.t.Helper()
	body := append([]byte{kind}, ssh.Marshal(fields)...)
	_, err := f.channel.Write(append(wire.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	must(f.t, err)
	var length [4]byte
	_, err = io.ReadFull(f.channel, length[:])
	must(f.t, err)
	answer := make([]byte, wire.BigEndian.Uint32(length[:]))
	_, err = io.ReadFull(f.channel, answer)
	must(f.t, err)
	return answer[0], answer[5:]
}

func (f *fileSession) open(name string, flags uint32) (byte, []byte) {
	f.t.Helper()
	return f.ask(3, struct {
		ID         uint32
		Name       string
		Flags, Has uint32
	}{1, name, flags, 0})
}

// refusal returns the status code with which a file does not open, or 0 if it opens.
func (f *fileSession) refusal(name string) uint32 {
	f.t.Helper()
	kind, answer := f.open(name, 1)
	if kind != 101 {
		return 0
	}
	return wire.BigEndian.Uint32(answer)
}

func (f *fileSession) handle(name string, flags uint32) string {
	f.t.Helper()
	kind, answer := f.open(name, flags)
	if kind != 102 {
		f.t.Fatalf("%s does not open: %q", name, answer)
	}
	return string(answer[4:])
}

func (f *fileSession) put(name string, content []byte) {
	f.t.Helper()
	handle := f.handle(name, 2|8|16)
	for at := 0; at < len(content); at += 200_000 {
		if _, answer := f.ask(6, struct {
			ID     uint32
			Handle string
			Offset uint64
			Data   []byte
		}{1, handle, uint64(at), content[at:min(at+200_000, len(content))]}); wire.BigEndian.Uint32(answer) != 0 {
			f.t.Fatalf("writing at %d: %q", at, answer)
		}
	}
}

func (f *fileSession) get(name string) (content []byte) {
	f.t.Helper()
	handle := f.handle(name, 1)
	for {
		kind, answer := f.ask(5, struct {
			ID     uint32
			Handle string
			Offset uint64
			Length uint32
		}{1, handle, uint64(len(content)), 200_000})
		if kind != 103 {
			return content
		}
		content = append(content, answer[4:]...)
	}
}
