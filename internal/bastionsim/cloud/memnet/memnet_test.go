package memnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"
)

var (
	router = netip.MustParseAddrPort("10.250.0.1:40000")
	node   = netip.MustParseAddrPort("10.250.0.10:22")
)

// Far more bytes than the buffers hold go both ways at once, in writes of odd sizes. Neither side blocks for ever, and
// nothing is lost.
func TestBothSidesWriteMuchAtOnce(t *testing.T) {
	a, b := Pipe(router, node)
	data := make([]byte, 5*MaxBuffer+7)
	for i := range data {
		data[i] = byte(i * 31 / 7)
	}
	var group sync.WaitGroup
	for _, conn := range []*Conn{a, b} {
		group.Go(func() {
			for rest, size := data, 1; len(rest) > 0; size = size*3 + 1 {
				n, err := conn.Write(rest[:min(size%200000+1, len(rest))])
				if err != nil {
					t.Errorf("write: %v", err)
					return
				}
				rest = rest[n:]
			}
			_ = conn.CloseWrite()
		})
		group.Go(func() {
			got, err := io.ReadAll(conn)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("read %d bytes (%v), want the %d written", len(got), err, len(data))
			}
		})
	}
	group.Wait()
}

func TestWhatWasWrittenArrivesAfterClose(t *testing.T) {
	a, b := Pipe(router, node)
	if _, err := a.Write([]byte("bye")); err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	if got, err := io.ReadAll(b); err != nil || string(got) != "bye" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("write to a closed side: %v", err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after the own Close: %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after the own Close: %v", err)
	}
}

func TestDeadlines(t *testing.T) {
	a, b := Pipe(router, node)
	_ = a.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	_ = a.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := a.Write(make([]byte, 2*MaxBuffer)); n != MaxBuffer || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %d, %v", n, err)
	}
	// A deadline in the past interrupts a Read that waits. http.Server and others rely on this.
	done := make(chan error)
	_ = a.SetReadDeadline(time.Time{})
	go func() {
		_, err := a.Read(make([]byte, 1))
		done <- err
	}()
	_ = a.SetReadDeadline(time.Unix(1, 0))
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("interrupted read: %v", err)
	}
	// Without a deadline, both work again.
	_ = a.SetDeadline(time.Time{})
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("read: %d, %v", n, err)
	}
}

func TestListener(t *testing.T) {
	l := Listen(node)
	client, err := l.Dial(router)
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if server.RemoteAddr().String() != router.String() || client.RemoteAddr().String() != node.String() {
		t.Errorf("the addresses are %s and %s", server.RemoteAddr(), client.RemoteAddr())
	}
	var last net.Conn
	for range Backlog {
		if last, err = l.Dial(router); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Dial(router); !errors.Is(err, ErrRefused) {
		t.Errorf("beyond the backlog: %v", err)
	}
	_ = l.Close()
	if _, err := last.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection that waited when the listener was closed reads %v", err)
	}
	if _, err := l.Dial(router); !errors.Is(err, ErrRefused) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after Close: %v", err)
	}
}
