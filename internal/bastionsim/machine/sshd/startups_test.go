package sshd

import (
	"runtime"
	"testing"

	"github.com/gardenlite/gardenlite/internal/testutil"
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
	testutil.EventuallyTrue(t, "connections that are no longer read do not count", func() bool { return !r.tooMany() })
}
