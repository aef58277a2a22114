package component

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// maxRetry is the maximum delay between two attempts after errors. With the default of 1000 s an object whose errors
// came from a slow start would not be reconciled for minutes.
const maxRetry = 30 * time.Second

// NewControllerBuilder returns a builder for a controller of the manager. Its queue waits and backs off on the clock of the
// component, unless the options have another queue or rate limiter. Every controller of the process is built here.
func NewControllerBuilder(mgr manager.Manager, name string, options ...controller.Options) *builder.Builder {
	var o controller.Options
	if len(options) > 0 {
		o = options[0]
	}
	if o.NewQueue == nil {
		o.NewQueue = Queue(ClockOf(mgr), countController(mgr))
	}
	if o.RateLimiter == nil {
		o.RateLimiter = rateLimiter()
	}
	return builder.ControllerManagedBy(mgr).Named(name).WithOptions(o)
}

// countController counts a controller of a manager that New returned, and returns what to call once it has all objects of its first lists.
func countController(mgr manager.Manager) (begun func()) {
	m, ok := mgr.(*Manager)
	if !ok {
		return func() {}
	}
	m.starting.Add(1)
	return func() {
		if m.starting.Add(-1) == 0 {
			m.begun()
		}
	}
}

func rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedWithMaxWaitRateLimiter(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), maxRetry)
}

// ClockOf returns the clock of a manager that New returned, and the real clock for any other manager.
func ClockOf(mgr manager.Manager) clock.WithTicker {
	if m, ok := mgr.(*Manager); ok {
		return m.clock
	}
	return clock.RealClock{}
}

// Queue returns a function for the option NewQueue of a controller: its queues wait and back off on the given clock. It calls begun when
// the controller begins to work, after all objects of its first lists have been added.
func Queue(clk clock.WithTicker, begun func()) func(
	string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: clk})
		q := &watchedQueue{TypedRateLimitingInterface: queue, clock: clk, begun: sync.OnceFunc(begun)}
		q.remove = landscapeclock.Watch(clk, q)
		return q
	}
}

// watchedQueue tells the clock of a landscape what works, so that an advance of the clock waits for it.
type watchedQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	clock  clock.WithTicker
	begun  func()
	remove func()
}

func (q *watchedQueue) Get() (reconcile.Request, bool) {
	q.begun()
	request, shutdown := q.TypedRateLimitingInterface.Get()
	if !shutdown {
		landscapeclock.Begin(q.clock)
	}
	return request, shutdown
}

func (q *watchedQueue) Done(request reconcile.Request) {
	q.TypedRateLimitingInterface.Done(request)
	landscapeclock.End(q.clock)
}

func (q *watchedQueue) ShutDown() {
	q.remove()
	q.TypedRateLimitingInterface.ShutDown()
}

// RequeueAfter returns the result of a reconciliation that is repeated after the given time, or with back-off after an error.
func RequeueAfter(wait time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}
