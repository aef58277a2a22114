package landscape

import (
	"errors"
	"net"
	"strconv"
	"syscall"
)

// isTaken says whether another program listens on a port.
func isTaken(address string, port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	_ = listener.Close()
	return false
}

// freePort returns the port if it can be listened on, else 0.
func freePort(address string, port int) int {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return 0
	}
	_ = listener.Close()
	return port
}
