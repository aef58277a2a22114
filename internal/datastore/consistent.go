package datastore

import (
	"context"
	"sync/atomic"

	"github.com/k3s-io/kine/pkg/server"
)

// consistent gives what kine's backends answer the revision that it is of, as etcd does. An API server lists, and
// watches from the list's revision on: of what happens between what it was given and the revision that this was said to
// be of, no client of that API server would ever receive an event.
//
//   - kine reads the revision of an empty list after the list. It is one from before here.
//   - Of a list that a limit has cut, kine says the revision at which it counted the rest. It is that of the list here.
//   - Of two writes at once, kine may remember the earlier one as the last. The last that a client was told of counts here.
type consistent struct {
	server.Backend
	// told is the highest revision that a client was told of.
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
	return c.remember(rev), found, err
}

// Count is asked with a revision for what a limit has cut from a list of that revision.
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
	return c.remember(rev), kv, updated, err
}

func (c *consistent) Delete(ctx context.Context, key string, revision int64) (int64, *server.KeyValue, bool, error) {
	rev, kv, deleted, err := c.Backend.Delete(ctx, key, revision)
	return c.remember(rev), kv, deleted, err
}

func (c *consistent) CurrentRevision(ctx context.Context) (int64, error) {
	rev, err := c.Backend.CurrentRevision(ctx)
	if err != nil {
		return rev, err
	}
	return max(c.remember(rev), c.told.Load()), nil
}

// remember remembers a revision that is going to be told, and returns it.
func (c *consistent) remember(rev int64) int64 {
	for {
		told := c.told.Load()
		if rev <= told || c.told.CompareAndSwap(told, rev) {
			return rev
		}
	}
}
