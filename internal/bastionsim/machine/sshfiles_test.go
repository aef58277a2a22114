package machine

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sftpSession is a minimal client of the machine's SFTP server.
type sftpSession struct {
	ssh.Channel
	requests <-chan *ssh.Request
}

// client logs in.
func (l *login) client(t testing.TB) *ssh.Client {
	t.Helper()
	client, err := l.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newSFTP(t testing.TB, client *ssh.Client) *sftpSession {
	t.Helper()
	channel, requests, err := client.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := channel.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{"sftp"})); !ok || err != nil {
		t.Fatalf("the machine transfers no files: %v, %v", ok, err)
	}
	return &sftpSession{channel, requests}
}

// wait waits for the end of the session. It returns the exit status and the rest of the output.
func (s *sftpSession) wait() (status int, out, complaints string) {
	complained, _ := io.ReadAll(s.Stderr())
	rest, _ := io.ReadAll(s)
	status = -1
	for request := range s.requests {
		if request.Type == "exit-status" {
			status = int(binary.BigEndian.Uint32(request.Payload))
		}
	}
	return status, string(rest), string(complained)
}

// sftpPacket returns a packet with a type, a request ID and fields, which are strings and numbers.
func sftpPacket(kind byte, id uint32, fields ...any) []byte {
	p := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0, kind}, id)
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			p = append(binary.BigEndian.AppendUint32(p, uint32(len(f))), f...)
		case uint32:
			p = binary.BigEndian.AppendUint32(p, f)
		case uint64:
			p = binary.BigEndian.AppendUint64(p, f)
		}
	}
	binary.BigEndian.PutUint32(p, uint32(len(p)-4))
	return p
}

func (s *sftpSession) send(t testing.TB, packet []byte) {
	t.Helper()
	if _, err := s.Write(packet); err != nil {
		t.Fatal(err)
	}
}

// receive returns the next answer without its length.
func (s *sftpSession) receive(t testing.TB) []byte {
	t.Helper()
	var length [4]byte
	if _, err := io.ReadFull(s, length[:]); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(s, answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// Files are transferred as the user who logged in, relative to the home. Listings have names.
func TestSFTPOverSSH(t *testing.T) {
	l := withSSH(t)
	s := newSFTP(t, l.client(t))
	ask := func(kind byte, fields ...any) string {
		t.Helper()
		s.send(t, sftpPacket(kind, 3, fields...))
		return string(s.receive(t))
	}
	if got := ask(1); !strings.HasPrefix(got, "\x02\x00\x00\x00\x03") {
		t.Fatalf("the greeting is %q", got)
	}
	if got := ask(16, "."); !strings.Contains(got, "/home/gardener") {
		t.Errorf("the session is at %q", got)
	}
	handle := ask(3, "new", uint32(2|8), uint32(0))[9:]
	for kind, fields := range map[byte][]any{6: {handle, uint64(0), "hello"}, 18: {"new", "renamed"}} {
		if got := ask(kind, fields...); !strings.HasPrefix(got, "e\x00\x00\x00\x03\x00\x00\x00\x00") {
			t.Errorf("request of type %d: %q", kind, got)
		}
	}
	if got := ask(11, "."); got[0] != 102 {
		t.Errorf("opening the home: %q", got)
	} else if got = ask(12, got[9:]); !strings.Contains(got, " gardener gardener        5 ") {
		t.Errorf("the listing is %q", got)
	}
	for _, name := range []string{"/etc/shadow", "/root/x", "/etc/sudoers.d/x"} {
		if got := ask(3, name, uint32(1|2|8), uint32(0)); !strings.HasPrefix(got, "e\x00\x00\x00\x03\x00\x00\x00\x03") {
			t.Errorf("opening %s: %q", name, got)
		}
	}
	_ = s.CloseWrite()
	if status, _, complaints := s.wait(); status != 0 || complaints != "" {
		t.Errorf("the session ended with status %d: %s", status, complaints)
	}
	out, err := l.session(t).Output("cat renamed; stat -c ' %U:%G %a' renamed")
	if string(out) != "hello gardener:gardener 644\n" || err != nil {
		t.Errorf("the file is %q, %v", out, err)
	}
}

// A user without a login shell may not transfer files. A client that sends nonsense gets an error.
func TestSFTPRefused(t *testing.T) {
	l := withSSH(t)
	client := l.client(t)
	s := newSFTP(t, client)
	s.send(t, []byte("GET / HTTP/1.1\r\n\r\n"))
	if status, out, complaints := s.wait(); status != 1 || out != "" || !strings.Contains(complaints, "malformed") {
		t.Errorf("nonsense: status %d, %q, %q", status, out, complaints)
	}
	if out, err := l.session(t).CombinedOutput("sudo sed -i '/^gardener:/s,[^:]*$,/usr/sbin/nologin,' /etc/passwd"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// A new session on an existing connection is refused as well.
	if status, out, complaints := newSFTP(t, client).wait(); status != 1 || out != "" || !strings.Contains(complaints, "not available") {
		t.Errorf("without a shell: status %d, %q, %q", status, out, complaints)
	}
}

// A client that insists on the original protocol of scp, as "scp -O" does, gets an error that says what to use instead.
func TestSCPOverSSH(t *testing.T) {
	l := withSSH(t)
	for _, command := range []string{"scp -t f", "scp -f /etc/passwd", "scp -r -p -t ."} {
		session := l.session(t)
		session.Stdin = strings.NewReader("\x00C0640 1 f\nx\x00")
		out, err := session.Output(command)
		var exit *ssh.ExitError
		if !errors.As(err, &exit) || exit.ExitStatus() != 1 || !strings.HasPrefix(string(out), "\x02scp: ") ||
			!strings.HasSuffix(string(out), "use sftp, or scp without -O\n") {
			t.Errorf("%s: %q, %v", command, out, err)
		}
	}
	if out, err := l.session(t).Output("ls f 2>&1"); err == nil {
		t.Errorf("there is a file: %s", out)
	}
}

// BenchmarkUpload writes a file of 10 MB again and again, with as many requests under way as OpenSSH's client has.
func BenchmarkUpload(b *testing.B) {
	s := newSFTP(b, withSSH(b).client(b))
	s.send(b, sftpPacket(1, 3))
	s.receive(b)
	s.send(b, sftpPacket(3, 1, "file", uint32(2|8), uint32(0)))
	handle := string(s.receive(b)[9:])
	const block, blocks, waiting = 32 << 10, 10_000_000 / (32 << 10), 64
	data := strings.Repeat("x", block)
	b.SetBytes(block * blocks)
	for b.Loop() {
		for i := range blocks + waiting {
			if i < blocks {
				s.send(b, sftpPacket(6, uint32(i), handle, uint64(i*block), data))
			}
			if i >= waiting {
				if answer := s.receive(b); answer[8] != 0 {
					b.Fatalf("%q", answer)
				}
			}
		}
	}
}
