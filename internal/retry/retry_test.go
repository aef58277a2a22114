package retry

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/client-go/util/retry"
)

// If it fails, client-go's util/retry can be used instead of this package.
func TestUpstreamReturnsNilForAnInterruptedAttempt(t *testing.T) {
	for _, interrupted := range []error{context.Canceled, context.DeadlineExceeded} {
		if err := upstream.RetryOnConflict(upstream.DefaultRetry, func() error { return interrupted }); err != nil {
			t.Errorf("client-go returns %v for an attempt that returned %v", err, interrupted)
		}
	}
}

func TestLastErrorIsReturned(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "", errors.New("outdated"))
	for _, c := range []struct {
		name     string
		attempts []error
		want     error
	}{
		{"success", []error{nil}, nil},
		{"success after a conflict", []error{conflict, nil}, nil},
		{"the context ends in an attempt", []error{context.Canceled}, context.Canceled},
		{"a request times out", []error{conflict, context.DeadlineExceeded}, context.DeadlineExceeded},
		{"another error", []error{conflict, errors.ErrUnsupported}, errors.ErrUnsupported},
		{"too many conflicts", []error{conflict, conflict, conflict, conflict}, conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := 0
			err := OnConflict(t.Context(), func() error {
				made++
				return c.attempts[made-1]
			})
			if err != c.want || made != len(c.attempts) {
				t.Errorf("%d attempts, error %v; want %d, %v", made, err, len(c.attempts), c.want)
			}
		})
	}
}

func TestEndedContextMakesNoAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := OnConflict(ctx, func() error {
		t.Error("an attempt was made")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
