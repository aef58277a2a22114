package seedhost

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// memoryLease is a Lease in memory, as the process "own" sees it.
type memoryLease struct {
	mu            sync.Mutex
	record        *resourcelock.LeaderElectionRecord
	version, seen int
	down          bool
	refused       int // requests while it is down
}

var errDown = errors.New("the API server does not answer")

// answers reports whether the API server answers. The lock is held.
func (l *memoryLease) answers() bool {
	if l.down {
		l.refused++
	}
	return !l.down
}

func (l *memoryLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.answers() {
		return nil, nil, errDown
	}
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{}, "lease")
	}
	l.seen = l.version
	raw, err := json.Marshal(l.record)
	record := *l.record
	return &record, raw, err
}

func (l *memoryLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *memoryLease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.answers() {
		return errDown
	}
	if l.seen != l.version {
		return errors.New("it has changed")
	}
	l.put(record)
	l.seen = l.version
	return nil
}

func (l *memoryLease) put(record resourcelock.LeaderElectionRecord) {
	l.record = &record
	l.version++
}

func (*memoryLease) RecordEvent(string) {}
func (*memoryLease) Identity() string   { return "own" }
func (*memoryLease) Describe() string   { return "lease" }

// holder returns who has the Lease.
func (l *memoryLease) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return ""
	}
	return l.record.HolderIdentity
}

// give gives the Lease to a process, to none with "".
func (l *memoryLease) give(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := *l.record
	record.HolderIdentity, record.RenewTime.Time = holder, time.Now()
	l.put(record)
}

func (l *memoryLease) setDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.refused = down, 0
}

func (l *memoryLease) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// elected is the work of an elected process.
type elected struct {
	*election
	lease         *memoryLease
	status        *control.Store
	begins, ends  atomic.Int32
	fails, blocks atomic.Bool
}

var quick = leaseTimes{lease: time.Minute, renew: 200 * time.Millisecond, retry: 20 * time.Millisecond}

func newElected(t *testing.T) *elected {
	w := &elected{lease: &memoryLease{}, status: &control.Store{}}
	begin := func(ctx context.Context) error {
		w.begins.Add(1)
		if w.blocks.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		if w.fails.Load() {
			return errors.New("it fails")
		}
		return nil
	}
	end := func() error {
		if w.ends.Add(1); w.lease.holder() == "" {
			t.Error("the work goes on although the Lease was given away")
		}
		return nil
	}
	var err error
	if w.election, err = startElection(w.lease, quick, w.status, begin, end); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *elected) waitFor(t *testing.T, what string, begins, ends int32) {
	t.Helper()
	testutil.EventuallyTrue(t, what, func() bool { return w.begins.Load() == begins && w.ends.Load() == ends })
}

// TestElection checks that a process works on while its Lease cannot be renewed, that it ends its work when another one has the
// Lease, and that it begins again when that one has released it.
func TestElection(t *testing.T) {
	w := newElected(t)
	w.waitFor(t, "the work has begun", 1, 0)

	w.lease.setDown(true)
	testutil.EventuallyTrue(t, "the Lease is lost", func() bool { return w.lease.refusals() > 2*int(quick.renew/quick.retry) })
	w.lease.setDown(false)
	before := w.lease.version
	testutil.EventuallyTrue(t, "it is renewed again", func() bool {
		w.lease.mu.Lock()
		defer w.lease.mu.Unlock()
		return w.lease.version > before
	})
	w.waitFor(t, "the work goes on", 1, 0)

	w.lease.give("other")
	w.waitFor(t, "the work has ended", 1, 1)
	testutil.EventuallyTrue(t, "the status says so", func() bool {
		components := w.status.Components()
		return len(components) == 1 && components[0].State == control.StateReady && components[0].Message != ""
	})
	w.lease.give("")
	w.waitFor(t, "the work has begun again", 2, 1)
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if holder := w.lease.holder(); holder != "" || w.ends.Load() != 2 {
		t.Errorf("after the stop %q has the Lease, and the work has ended %d times", holder, w.ends.Load())
	}
}

// TestElectedBeginFails checks that a begin that fails is tried again, after what it has begun has ended.
func TestElectedBeginFails(t *testing.T) {
	w := newElected(t)
	w.waitFor(t, "the work has begun", 1, 0)
	w.fails.Store(true)
	w.lease.give("other")
	w.waitFor(t, "the work has ended", 1, 1)
	w.lease.give("")
	testutil.EventuallyTrue(t, "it has failed twice", func() bool { return w.begins.Load() >= 3 && w.ends.Load() >= 3 })
	if components := w.status.Components(); components[0].State != control.StateFailed || components[0].Message != "it fails" {
		t.Errorf("the status: %+v", components)
	}
	w.fails.Store(false)
	testutil.EventuallyTrue(t, "the status is good", func() bool { return w.status.Components()[0].State == control.StateReady })
}

// TestElectedBeginIsInterrupted checks that a process that waits in its begin gives way to another one.
func TestElectedBeginIsInterrupted(t *testing.T) {
	w := newElected(t)
	w.waitFor(t, "the work has begun", 1, 0)
	w.lease.give("other")
	w.waitFor(t, "the work has ended", 1, 1)
	w.blocks.Store(true)
	w.lease.give("")
	w.waitFor(t, "the work begins", 2, 1)
	w.lease.give("other")
	w.waitFor(t, "what has begun has ended", 2, 2)
}
