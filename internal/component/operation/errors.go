package operation

import (
	"errors"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// Error is an error with Gardener's error codes.
type Error struct {
	Err   error
	Codes []corev1beta1.ErrorCode
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Wait is the error of an actuator that has nothing to do until something else has happened. The actuator is called
// again after a time, and the operation continues.
type Wait struct {
	// For is what the actuator waits for. It is part of the error message, and so of the status.
	For string
	// After is the delay before the next call.
	After time.Duration
	// Progress is the progress of the operation, from 1 to 99 percent.
	Progress int32
}

func (w *Wait) Error() string { return "waiting for " + w.For }

// ConfigurationProblem returns an error with the code for problems that persist until a user corrects the object.
func ConfigurationProblem(err error) error {
	return &Error{err, []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}}
}

func CodesOf(err error) []corev1beta1.ErrorCode {
	if coded := (*Error)(nil); errors.As(err, &coded) {
		return coded.Codes
	}
	return nil
}
