package landscape

import (
	"net"
	"strconv"
)

// freePort returns the port if it can be listened on, else 0.
func freePort(address string, port int) int {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return 0
	}
	_ = listener.Close()
	return port
}
