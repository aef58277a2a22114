package sshd

import (
	"runtime"
	"testing"
	"time"
)

// TestReaders verifies that a connection counts until it is no longer read.
func TestReaders(t *testing.T) {
	r := &readers{}
	var read []*loginConn
	for range MaxReaders {
		if r.tooMany() {
			t.Fatalf("%d connections are too many", len(read))
		}
		read = append(read, r.limited(nil))
	}
	if !r.tooMany() {
		t.Errorf("%d connections are not too many", len(read))
	}
	runtime.KeepAlive(read)
	r.next = time.Time{}
	if r.tooMany() {
		t.Error("connections that are no longer read count")
	}
}
