package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// runner ends at once if ends is set, and with its context otherwise.
type runner struct{ ends bool }

func (r *runner) Run(ctx context.Context) error {
	if !r.ends {
		<-ctx.Done()
	}
	return errors.New("ended")
}

// TestRestarts has a component end by itself, and fail to be made again twice: it runs in the end.
func TestRestarts(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	s := &Supervisor{Status: &control.Store{}, Clock: clk}
	made := make(chan int, 10)
	count := 0
	stop, err := s.Start("component", func() (Runner, error) {
		count++
		made <- count
		if count == 2 || count == 3 {
			return (*runner)(nil), errors.New("the API server does not answer")
		}
		return &runner{ends: count == 1}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 4; want++ {
		if want > 1 {
			testutil.EventuallyTrue(t, "a pause", clk.HasWaiters)
			clk.Step(restartLast)
		}
		if got := <-made; got != want {
			t.Fatalf("runner %d is made, not %d", got, want)
		}
	}
	stop()
	if count != 4 {
		t.Errorf("%d runners were made", count)
	}
}

// TestCountForbidden checks that a request counts that a component has no right to, and not one that comes too late for its
// namespace.
func TestCountForbidden(t *testing.T) {
	for _, test := range []struct {
		err   *apierrors.StatusError
		count int
	}{
		{apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", nil), 1},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}, 0},
	} {
		want, err := json.Marshal(test.err.Status())
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(want)
		}))
		t.Cleanup(server.Close)
		count := 0
		client := http.Client{Transport: &refusals{http.DefaultTransport, func(*http.Request) { count++ }}}
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || !bytes.Equal(body, want) || count != test.count {
			t.Errorf("%d requests count, want %d; the body is %s, %v", count, test.count, body, err)
		}
	}
}
