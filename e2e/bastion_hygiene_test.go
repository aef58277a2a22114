package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// halfOpen is how many connections are left half open, and mostWaiting how many of them a bastion keeps at most.
	halfOpen, mostWaiting = 1000, 100
)

// halfOpens leaves connections to a Bastion half open: a third of them say nothing, a third their version, and a third
// begin to exchange keys. It checks that they disturb neither open sessions nor new logins, and that most of them
// are closed.
func (s *shoot) halfOpens(t *testing.T) {
	b := s.newBastion(t, "flooded", "127.0.0.0/8")
	before, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	must(t, err)
	defer before.Close()
	conns := make([]net.Conn, 0, halfOpen)
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for i := range halfOpen {
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", b.address)
		must(t, err)
		conns = append(conns, conn)
		hello := []string{"", "SSH-2.0-half\r\n", "SSH-2.0-half\r\n\x00\x00\x00\x0c\x0a\x14"}[i%3]
		_, err = io.WriteString(conn, hello)
		must(t, err)
		if i%100 == 50 { // also while the connections are opened
			s.logsIn(t, b)
		}
	}
	s.logsIn(t, b)
	if _, _, err := before.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		t.Errorf("who was logged in before is cut: %v", err)
	}
	eventually(t, shootTimeout, func(context.Context) error {
		if open := stillOpen(conns); open > mostWaiting {
			return fmt.Errorf("%d of %d connections wait, more than %d", open, len(conns), mostWaiting)
		}
		return nil
	})
	b.delete(t)
	eventually(t, shootTimeout, func(context.Context) error {
		if open := stillOpen(conns); open > 0 {
			return fmt.Errorf("the Bastion has gone, and %d connections are open", open)
		}
		return nil
	})
}

// logsIn expects that a login with the key succeeds at once.
func (s *shoot) logsIn(t *testing.T, b *bastion) {
	t.Helper()
	client, err := login(t.Context(), b.address, "", ssh.PublicKeys(b.signer))
	if err != nil {
		t.Fatalf("half-open connections keep out who has the key: %v", err)
	}
	_ = client.Close()
}

// stillOpen counts the connections that the other side has not closed.
func stillOpen(conns []net.Conn) (open int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, conn := range conns {
		group.Go(func() {
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := io.Copy(io.Discard, bufio.NewReader(conn)); errors.Is(err, os.ErrDeadlineExceeded) {
				mu.Lock()
				defer mu.Unlock()
				open++
			}
		})
	}
	group.Wait()
	return open
}
