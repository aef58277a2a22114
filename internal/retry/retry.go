// Package retry repeats failed attempts. It replaces client-go's util/retry, which returns nil if an attempt returns the
// error of a context that ended or of a request that timed out.
package retry

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// DefaultBackoff is for updates of objects that other clients may change at the same time.
var DefaultBackoff = wait.Backoff{Steps: 4, Duration: 10 * time.Millisecond, Factor: 5, Jitter: 0.1}

// OnConflict calls attempt until it returns another error than a conflict, with DefaultBackoff. attempt reads what it
// changes.
func OnConflict(ctx context.Context, attempt func() error) error {
	return OnError(ctx, DefaultBackoff, apierrors.IsConflict, attempt)
}

// OnError calls attempt until it succeeds, its error is not retriable, the steps of the backoff are used up, or the context
// ends. It returns the error of the last attempt.
func OnError(ctx context.Context, backoff wait.Backoff, retriable func(error) bool, attempt func() error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		last = attempt()
		return last == nil || !retriable(last), nil
	})
	return cmp.Or(last, err)
}
