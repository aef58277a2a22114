package component

import (
	"errors"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// NotYet is an error of a reconciliation that will succeed once another component has done its part. It is retried with
// back-off like any other error, and needs no attention.
func NotYet(err error) error { return &notYet{err} }

type notYet struct{ error }

func (e *notYet) Unwrap() error { return e.error }

// Quiet is a log in which what is normal among several who write and wait for each other is no error: one was faster than
// the other, or has not come so far. Both are tried again.
func Quiet(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(&sink{log.GetSink()})
}

type sink struct{ logr.LogSink }

// Error logs expected errors as details.
func (s *sink) Error(err error, message string, keysAndValues ...any) {
	if !isNormal(err) {
		s.LogSink.Error(err, message, keysAndValues...)
	} else if s.Enabled(1) {
		s.Info(1, "Trying again", append(keysAndValues, "reason", err.Error())...)
	}
}

func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return &sink{s.LogSink.WithValues(keysAndValues...)}
}

func (s *sink) WithName(name string) logr.LogSink { return &sink{s.LogSink.WithName(name)} }

// isNormal says so of several errors only if it is true for each.
func isNormal(err error) bool {
	if err == nil {
		return false
	}
	if several := (interface{ Unwrap() []error })(nil); errors.As(err, &several) {
		for _, one := range several.Unwrap() {
			if !isNormal(one) {
				return false
			}
		}
		return true
	}
	waits := (*notYet)(nil)
	return apierrors.IsConflict(err) || errors.As(err, &waits)
}
