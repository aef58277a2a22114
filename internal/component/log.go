package component

import (
	"errors"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// NotYet wraps the error of a reconciliation that will succeed once another component has done its part. The
// reconciliation is retried with back-off as after any other error, but the error needs no attention.
func NotYet(err error) error { return &notYet{err} }

type notYet struct{ error }

func (e *notYet) Unwrap() error { return e.error }

// WithExpectedErrorsAsInfo returns a logger that logs expected errors at verbosity 1 instead of as errors: conflicts with another writer,
// and NotYet. Both are retried.
func WithExpectedErrorsAsInfo(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return log
	}
	return log.WithSink(&sink{log.GetSink()})
}

type sink struct{ logr.LogSink }

// Error logs expected errors at verbosity 1.
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

// isNormal reports whether an error is expected; joined errors are only if each of them is.
func isNormal(err error) bool {
	if err == nil {
		return false
	}
	if several := (interface{ Unwrap() []error })(nil); errors.As(err, &several) {
		return !slices.ContainsFunc(several.Unwrap(), func(one error) bool { return !isNormal(one) })
	}
	waits := (*notYet)(nil)
	return apierrors.IsConflict(err) || errors.As(err, &waits)
}
