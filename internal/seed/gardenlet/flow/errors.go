package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// coded is an error with Gardener's codes.
type coded struct {
	error
	codes []corev1beta1.ErrorCode
}

func (e *coded) Unwrap() error { return e.error }

// WithCodes adds Gardener's error codes to an error. It returns nil for nil.
func WithCodes(err error, codes ...corev1beta1.ErrorCode) error {
	if err == nil || len(codes) == 0 {
		return err
	}
	return &coded{err, codes}
}

// Codes returns the codes of an error and of all errors that it wraps, sorted and without duplicates.
func Codes(err error) []corev1beta1.ErrorCode {
	var codes []corev1beta1.ErrorCode
	walk(err, func(err error) {
		if c, ok := err.(*coded); ok {
			codes = append(codes, c.codes...)
		}
	})
	slices.Sort(codes)
	return slices.Compact(codes)
}

func walk(err error, visit func(error)) {
	if err == nil {
		return
	}
	visit(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		walk(e.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			walk(err, visit)
		}
	}
}

// final are Gardener's codes of errors that a retry does not fix: a user has to act first.
var final = []corev1beta1.ErrorCode{
	corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraDependencies,
	corev1beta1.ErrorInfraQuotaExceeded, corev1beta1.ErrorInfraRateLimitsExceeded, corev1beta1.ErrorConfigurationProblem,
	corev1beta1.ErrorProblematicWebhook,
}

// Final reports whether it is pointless to retry after the error.
func Final(err error) bool {
	return slices.ContainsFunc(Codes(err), func(code corev1beta1.ErrorCode) bool { return slices.Contains(final, code) })
}

// pending says what a task waits for.
type pending string

func (p pending) Error() string { return string(p) }

// Pending returns the error for a task that has done its part and waits for another component, without blocking a worker:
// the flow must be run again later.
func Pending(format string, args ...any) error { return pending(fmt.Sprintf(format, args...)) }

// stuck says why a task waits for longer than it should.
type stuck string

func (s stuck) Error() string { return string(s) }

// Stuck is like Pending for a task that waits for longer than it should: the progress of the flow says why.
func Stuck(format string, args ...any) error { return stuck(fmt.Sprintf(format, args...)) }

// IsPending reports whether an error was created by Pending or Stuck.
func IsPending(err error) bool {
	var waits pending
	return errors.As(err, &waits) || isStuck(err)
}

func isStuck(err error) bool {
	var waits stuck
	return errors.As(err, &waits)
}

// TaskError is the error of a failed task.
type TaskError struct {
	Task string
	Err  error
}

func (e *TaskError) Error() string { return fmt.Sprintf("task %q failed: %v", e.Task, e.Err) }

func (e *TaskError) Unwrap() error { return e.Err }

// Errors are the errors of the failed tasks of a flow.
type Errors []*TaskError

func (e Errors) Error() string {
	messages := make([]string, len(e))
	for i, err := range e {
		messages[i] = err.Error()
	}
	return strings.Join(messages, "; ")
}

func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// LastErrors converts an error for a status: into one entry per failed task, or a single one if it is no error of a flow.
func LastErrors(err error, now time.Time) []corev1beta1.LastError {
	if err == nil {
		return nil
	}
	var errs Errors
	if !errors.As(err, &errs) {
		return []corev1beta1.LastError{lastError(err, nil, now)}
	}
	all := make([]corev1beta1.LastError, len(errs))
	for i, err := range errs {
		all[i] = lastError(err, &err.Task, now)
	}
	return all
}

func lastError(err error, task *string, now time.Time) corev1beta1.LastError {
	at := metav1.NewTime(now.UTC())
	return corev1beta1.LastError{Description: err.Error(), TaskID: task, Codes: Codes(err), LastUpdateTime: &at}
}
