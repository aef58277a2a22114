package statedir

import (
	"errors"
	"net"
	"strconv"
	"syscall"
)

// IsTaken says whether another program listens on a port.
func IsTaken(address string, port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	_ = listener.Close()
	return false
}

// FreePort returns the port if it can be listened on, else 0.
func FreePort(address string, port int) int {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return 0
	}
	_ = listener.Close()
	return port
}
