package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// sshProgram is a "gardenlite ssh" whose command goes on until it is ended.
type sshProgram struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// runsSSH starts "gardenlite ssh", and returns when its command runs on the node.
func (s *shoot) runsSSH(t *testing.T, flags ...string) *sshProgram {
	t.Helper()
	args := append([]string{"ssh", "--data-dir", s.l.dir, "dev/" + s.name}, flags...)
	cmd := exec.Command(binary, append(args, "--", "echo begun; sleep 1000")...)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	c := &sshProgram{cmd, make(chan struct{})}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-c.ended
	})
	begun := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(stdout)
		line, _ := lines.ReadString('\n')
		begun <- line
		_, _ = lines.ReadString(0)
		_ = cmd.Wait()
		close(c.ended)
	}()
	select {
	case line := <-begun:
		if line != "begun\n" {
			t.Fatalf("the command says %q", line)
		}
	case <-time.After(shootTimeout):
		t.Fatal("the command has not begun")
	}
	return c
}

// ends sends a signal to the client, and returns its exit status.
func (c *sshProgram) ends(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	must(t, c.cmd.Process.Signal(signal))
	select {
	case <-c.ended:
	case <-time.After(shootTimeout):
		t.Fatalf("%s does not end the client", signal)
	}
	return c.cmd.ProcessState.ExitCode()
}

// clientEnds ends clients by signals. Each client deletes its Bastion, except after SIGKILL. Then the Bastion stays
// until it expires, which TestBastionRules covers.
func (s *shoot) clientEnds(t *testing.T, address string) {
	for _, end := range []struct {
		signal syscall.Signal
		status int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 130}, {syscall.SIGHUP, 129}} {
		c := s.runsSSH(t)
		if got := c.ends(t, end.signal); got != end.status {
			t.Errorf("after %s the client ends with %d, not %d", end.signal, got, end.status)
		}
		eventually(t, shootTimeout, func(context.Context) error { return s.l.noBastions(t) })
	}

	local := fmt.Sprintf("127.0.0.1:%d", testutil.UnusedPort(t))
	c := s.runsSSH(t, "-L", local+":"+net.JoinHostPort(address, "22"))
	conn, err := net.DialTimeout("tcp", local, 10*time.Second)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(shootTimeout)))
	if hello, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(hello, "SSH-2.0-") {
		t.Errorf("through the forward: %q, %v", hello, err)
	}
	c.ends(t, syscall.SIGKILL)
	if answers(local) {
		t.Error("something listens where the client forwarded a port")
	}
	left, err := s.l.at("bastions", shootNamespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(left.Items) != 1 {
		t.Fatalf("%d Bastions are left, one expected", len(left.Items))
	}
	if expires, _ := left.Items[0].Object["status"].(map[string]any)["expirationTimestamp"].(string); expires == "" {
		t.Error("the Bastion that is left does not expire")
	}
	must(t, s.l.at("bastions", shootNamespace).Delete(t.Context(), left.Items[0].GetName(), metav1.DeleteOptions{}))
	eventually(t, shootTimeout, func(context.Context) error {
		if err := s.l.noBastions(t); err != nil {
			return fmt.Errorf("after the client was killed: %w", err)
		}
		return nil
	})
}
