package controlplane

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestConnectionsAreCut checks that cut closes open connections, and that later ones are closed immediately.
func TestConnectionsAreCut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all := newConnections(listener)
	defer all.Close()
	dial := func() net.Conn {
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client
	}
	held, ended := dial(), dial()
	for range 2 {
		conn, err := all.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if conn.RemoteAddr().String() == ended.LocalAddr().String() {
			conn.Close()
		}
	}
	if len(all.open) != 1 {
		t.Errorf("%d connections are known, one is open", len(all.open))
	}
	all.cut()
	if _, err := held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection goes on: %v", err)
	}
	late := dial()
	if conn, err := all.Accept(); err == nil {
		t.Errorf("accepted after the end: %v", conn.RemoteAddr())
	}
	if _, err := late.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the late connection goes on: %v", err)
	}
	if len(all.open) != 0 {
		t.Errorf("%d connections are known still", len(all.open))
	}
}
