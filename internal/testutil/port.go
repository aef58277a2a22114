package testutil

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// UnusedPort returns a port of the loopback address without a listener. It is below the ports that the system chooses, so that
// no other program gets it before the test listens.
func UnusedPort(t testing.TB) int {
	t.Helper()
	for {
		port := 10000 + rand.IntN(10000)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
}
