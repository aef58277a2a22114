package operation

import (
	"errors"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// Error is an error that has some of Gardener's error codes.
type Error struct {
	Err   error
	Codes []corev1beta1.ErrorCode
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Wait is what an actuator returns that has nothing to do until something else has happened: it is called again after a
// time, and the operation continues.
type Wait struct {
	// For is what it waits for, as the status says it.
	For string
	// After is the delay before the next call.
	After time.Duration
	// Progress of the operation, from 1 to 99 percent.
	Progress int32
}

func (w *Wait) Error() string { return "waiting for " + w.For }

// ConfigurationProblem is an error that persists until a user corrects the object.
func ConfigurationProblem(err error) error {
	return &Error{err, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}}
}

func CodesOf(err error) []corev1beta1.ErrorCode {
	if coded := (*Error)(nil); errors.As(err, &coded) {
		return coded.Codes
	}
	return nil
}
