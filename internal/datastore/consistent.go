package datastore

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/k3s-io/kine/pkg/server"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrNoAnswer is the error of each request to an external database that cannot be reached.
var ErrNoAnswer = errors.New("the datastore does not answer")

var (
	errCutShort   = errors.New("the connection to the database broke during a list: list again")
	errNotWritten = errors.New("the datastore cannot write: is its disk full, or the database read-only?")
)

// Unavailable returns what to tell a client if an error of a request to a datastore is none of the client: it names no
// address and no user. It returns false for other errors.
func Unavailable(err error) (message string, is bool) {
	answer, isStatus := status.FromError(err)
	if !isStatus {
		return "", false
	}
	for _, known := range []error{ErrNoAnswer, errCutShort, errNotWritten} {
		if answer.Message() == known.Error() {
			return answer.Message(), true
		}
	}
	return ErrNoAnswer.Error(), answer.Code() == codes.Unavailable // of an etcd
}

// consistent wraps a kine backend so that each answer is complete and has the revision of its content, as with etcd. An
// API server lists, and watches from the revision of the list on. If that revision were too high, no client of the API
// server would ever receive the events between the content of the list and that revision.
//
//   - kine reads the revision of an empty list after the list. consistent returns a revision from before the list.
//   - For a list that a limit has cut, kine returns the revision at which it counted the rest. consistent returns that of
//     the list.
//   - With two concurrent writes, kine may take the earlier one for the last. consistent takes the highest revision that a
//     client was told.
//   - kine returns what it has read of a list when the connection to the database breaks. consistent counts the keys.
//   - kine returns a conflict for every update and deletion that fails. consistent returns an error if the key has the
//     expected revision: the API server would try again at once until the request times out.
type consistent struct {
	server.Backend
	// external reports that the connection to the database may break.
	external bool
	// told is the highest revision that was returned to a client.
	told atomic.Int64
}

func (c *consistent) List(ctx context.Context, key, end string, limit, revision int64, keysOnly bool) (int64, []*server.KeyValue, error) {
	before, err := c.CurrentRevision(ctx)
	if err != nil {
		return 0, nil, err
	}
	rev, found, err := c.Backend.List(ctx, key, end, limit, revision, keysOnly)
	if err == nil && len(found) == 0 && revision == 0 {
		return before, found, nil
	}
	if last := limit <= 0 || int64(len(found)) < limit; c.external && last && err == nil && len(found) > 0 {
		if revision == 0 {
			revision = rev
		}
		if _, n, err := c.Backend.Count(ctx, key, end, revision); err != nil || n != int64(len(found)) {
			return 0, nil, cmp.Or(err, errCutShort)
		}
	}
	return c.remember(rev), found, err
}

// Count is called with a revision to count all keys of a list of that revision that a limit has cut.
func (c *consistent) Count(ctx context.Context, key, end string, revision int64) (int64, int64, error) {
	rev, n, err := c.Backend.Count(ctx, key, end, revision)
	if c.remember(rev); err == nil && revision > 0 {
		rev = revision
	}
	return rev, n, err
}

func (c *consistent) Get(ctx context.Context, key string, revision int64, keysOnly bool) (int64, *server.KeyValue, error) {
	before, err := c.CurrentRevision(ctx)
	if err != nil {
		return 0, nil, err
	}
	rev, kv, err := c.Backend.Get(ctx, key, revision, keysOnly)
	if err == nil && kv == nil && revision == 0 {
		return before, nil, nil
	}
	return c.remember(rev), kv, err
}

func (c *consistent) Create(ctx context.Context, key string, value []byte, lease int64) (int64, error) {
	rev, err := c.Backend.Create(ctx, key, value, lease)
	return c.remember(rev), err
}

func (c *consistent) Update(ctx context.Context, key string, value []byte, revision, lease int64) (int64, *server.KeyValue, bool, error) {
	rev, kv, updated, err := c.Backend.Update(ctx, key, value, revision, lease)
	return c.remember(rev), kv, updated, cmp.Or(err, notWritten(updated, kv, revision))
}

func (c *consistent) Delete(ctx context.Context, key string, revision int64) (int64, *server.KeyValue, bool, error) {
	rev, kv, deleted, err := c.Backend.Delete(ctx, key, revision)
	return c.remember(rev), kv, deleted, cmp.Or(err, notWritten(deleted, kv, revision))
}

// notWritten returns an error if a write that was to replace a revision of a key failed for another reason than a conflict.
func notWritten(written bool, kv *server.KeyValue, revision int64) error {
	if written || kv == nil || kv.ModRevision != revision {
		return nil
	}
	return errNotWritten
}

func (c *consistent) CurrentRevision(ctx context.Context) (int64, error) {
	rev, err := c.Backend.CurrentRevision(ctx)
	if err != nil {
		return rev, err
	}
	return max(c.remember(rev), c.told.Load()), nil
}

// remember records a revision that is about to be returned to a client, and returns it.
func (c *consistent) remember(rev int64) int64 {
	for {
		told := c.told.Load()
		if rev <= told || c.told.CompareAndSwap(told, rev) {
			return rev
		}
	}
}
