package component

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestControllerWaitsOnTheClock checks that RequeueAfter and the back-off after errors follow the clock of the
// component.
func TestControllerWaitsOnTheClock(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	m, err := New(Config{Name: "x", REST: &rest.Config{Host: "https://127.0.0.1:1"},
		AddToScheme: runtime.NewSchemeBuilder(scheme.AddToScheme), Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	calls, number := make(chan int), 0
	err = NewControllerBuilder(m, "waits").WatchesRawSource(
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(reconcile.Request{})
			return nil
		})).Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		number++
		select {
		case calls <- number:
		case <-ctx.Done():
		}
		if number == 2 {
			return RequeueAfter(time.Hour, errors.New("not now"))
		}
		return RequeueAfter(24*time.Hour, nil)
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	for want := 1; want <= 4; want++ {
		for got := 0; got == 0; {
			if want > 1 {
				clk.Step(time.Hour)
			}
			select {
			case got = <-calls:
			case <-time.After(10 * time.Millisecond): // the queue may not have begun to wait yet
			case <-t.Context().Done():
				t.Fatal("it waits on")
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAdvanceWaitsForControllers checks that an advance of the clock does not skip what controllers have not looked at yet.
func TestAdvanceWaitsForControllers(t *testing.T) {
	clk := landscapeclock.New(nil, nil)
	if err := clk.SetRate(0); err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{Name: "x", REST: &rest.Config{Host: "https://127.0.0.1:1"},
		AddToScheme: runtime.NewSchemeBuilder(scheme.AddToScheme), Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	start, began := clk.Now(), make(chan struct{})
	err = NewControllerBuilder(m, "late").WatchesRawSource(
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			close(began)
			<-time.After(100 * time.Millisecond) // longer than an advance waits when nothing works
			queue.Add(reconcile.Request{})
			return nil
		})).Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		if late := clk.Since(start); late > 0 {
			t.Errorf("the clock has been advanced by %s before", late)
		}
		landscapeclock.UntilDue(clk, start.Add(time.Hour))
		return reconcile.Result{}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	<-began
	steps := 0
	err = clk.Advance(t.Context(), start.Add(2*time.Hour), func(context.Context) error { return nil }, func(time.Time) { steps++ })
	if err != nil || steps != 2 {
		t.Errorf("%d steps, %v", steps, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestQueueWaitsOnTheClock(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	queue := Queue(clk, func() {})("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	queue.AddAfter(reconcile.Request{}, 24*time.Hour)
	if queue.Len() != 0 {
		t.Fatal("it did not wait")
	}
	got := make(chan struct{})
	go func() { queue.Get(); close(got) }()
	deadline := time.After(testutil.Timeout)
	for {
		clk.Step(time.Hour) // the queue may not have begun to wait yet
		select {
		case <-got:
			return
		case <-deadline:
			t.Fatal("it waits on")
		default:
		}
	}
}

func TestRetriesGoOn(t *testing.T) {
	limiter := rateLimiter()
	last := time.Duration(0)
	for range 100 {
		last = limiter.When(reconcile.Request{})
	}
	if last != maxRetry {
		t.Errorf("after 100 errors the next attempt is %s later, not %s", last, maxRetry)
	}
}

func TestQuiet(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "seeds"}, "local", errors.New("modified"))
	waits := NotYet(errors.New("no identity"))
	for name, test := range map[string]struct {
		err    error
		normal bool
	}{
		"a conflict":              {fmt.Errorf("writing: %w", conflict), true},
		"not yet":                 {fmt.Errorf("installing: %w", waits), true},
		"both":                    {fmt.Errorf("x: %w", errors.Join(conflict, waits)), true},
		"a conflict and an error": {errors.Join(conflict, errors.New("broken")), false},
		"an error":                {errors.New("broken"), false},
		"nothing":                 {nil, false},
	} {
		var lines []string
		sink := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		log := WithExpectedErrorsAsInfo(sink).WithName("a").WithValues("b", 1)
		log.Error(test.err, "Reconciler error")
		if (len(lines) == 0) != test.normal {
			t.Errorf("%s: %v", name, lines)
		}
	}
	if waits.Error() != "no identity" {
		t.Errorf("the text is %q", waits)
	}
}
