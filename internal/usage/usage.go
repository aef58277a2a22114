// Package usage has the error that says that a value the user gave is wrong, so that every layer can return it: a command
// ends with its exit status, a server answers 400. It also checks the values of flags that several commands have.
package usage

import (
	"fmt"
	"net"
)

// Error says that a value the user gave is wrong.
type Error struct{ Err error }

// Errorf returns an Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// CheckBindAddress validates the value of --bind-address.
func CheckBindAddress(address string) error {
	if net.ParseIP(address) == nil {
		return fmt.Errorf("--bind-address %q: not an IP address", address)
	}
	return nil
}

// CheckPort validates the value of --port.
func CheckPort(port int) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("--port %d: a port is between 1 and 65535, or 0 for a free one", port)
	}
	return nil
}
