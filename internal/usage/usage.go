// Package usage has the error that says that a value the user gave is wrong, so that every layer can return it: a command
// ends with its exit status, a server answers 400.
package usage

import "fmt"

// Error says that a value the user gave is wrong.
type Error struct{ Err error }

// Errorf returns an Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }
