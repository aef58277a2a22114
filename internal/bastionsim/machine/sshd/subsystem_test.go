package sshd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"golang.org/x/crypto/ssh"
)

// A subsystem gets the client's bytes unchanged, even if a terminal was asked for. The session runs nothing else.
func TestSubsystem(t *testing.T) {
	f := serve(t, func(c *Config) { c.Subsystems = []string{"sftp"} })
	f.host.run = func(_ context.Context, s *Session) Exit {
		fmt.Fprint(s.Stderr, "complaint")
		in, _ := io.ReadAll(s.Stdin)
		fmt.Fprintf(s.Stdout, "%s|%s|%s|%v", s.Subsystem, s.Command, in, s.Terminal == nil)
		return Exit{Status: 3}
	}
	client := f.dial(t)
	if err := newSession(t, client).RequestSubsystem("netconf"); err == nil {
		t.Error("a subsystem that the machine does not have is granted")
	}
	s := newSession(t, client)
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	s.Stderr = &complaints
	if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.RequestSubsystem("sftp"); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.SendRequest("exec", true, ssh.Marshal(struct{ C string }{"true"})); ok || err != nil {
		t.Errorf("a command in a session that runs: %v, %v", ok, err)
	}
	fmt.Fprint(in, "a\x03\rb")
	_ = in.Close()
	if got, err := io.ReadAll(out); string(got) != "sftp||a\x03\rb|true" || err != nil {
		t.Errorf("it had %q, %v", got, err)
	}
	if !f.host.journaled("subsystem request for sftp by user gardener") {
		t.Error("the journal does not say so")
	}
}
