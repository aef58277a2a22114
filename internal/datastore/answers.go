package datastore

import (
	"context"
	"errors"

	"github.com/k3s-io/kine/pkg/server"
	"google.golang.org/grpc/status"
)

// external wraps the kine backend of an external database. Errors of the database contain its address and user, which
// are nothing for a client; the log has them, because kine polls the database.
type external struct{ server.Backend }

// answer returns the error that a client gets. Errors that etcd has as well are the client's.
func answer(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, etcds := status.FromError(err); etcds {
		return err
	}
	return ErrNoAnswer
}

func (e external) Get(ctx context.Context, key string, revision int64, keysOnly bool) (int64, *server.KeyValue, error) {
	rev, kv, err := e.Backend.Get(ctx, key, revision, keysOnly)
	return rev, kv, answer(err)
}

func (e external) Create(ctx context.Context, key string, value []byte, lease int64) (int64, error) {
	rev, err := e.Backend.Create(ctx, key, value, lease)
	return rev, answer(err)
}

func (e external) Delete(ctx context.Context, key string, revision int64) (int64, *server.KeyValue, bool, error) {
	rev, kv, deleted, err := e.Backend.Delete(ctx, key, revision)
	return rev, kv, deleted, answer(err)
}

func (e external) List(ctx context.Context, key, end string, limit, revision int64, keysOnly bool) (
	int64, []*server.KeyValue, error) {
	rev, kvs, err := e.Backend.List(ctx, key, end, limit, revision, keysOnly)
	return rev, kvs, answer(err)
}

func (e external) Count(ctx context.Context, key, end string, revision int64) (int64, int64, error) {
	rev, count, err := e.Backend.Count(ctx, key, end, revision)
	return rev, count, answer(err)
}

func (e external) Update(ctx context.Context, key string, value []byte, revision, lease int64) (
	int64, *server.KeyValue, bool, error) {
	rev, kv, updated, err := e.Backend.Update(ctx, key, value, revision, lease)
	return rev, kv, updated, answer(err)
}

func (e external) DbSize(ctx context.Context) (int64, error) {
	size, err := e.Backend.DbSize(ctx)
	return size, answer(err)
}

func (e external) CurrentRevision(ctx context.Context) (int64, error) {
	rev, err := e.Backend.CurrentRevision(ctx)
	return rev, answer(err)
}

func (e external) Compact(ctx context.Context, revision int64) (int64, error) {
	rev, err := e.Backend.Compact(ctx, revision)
	return rev, answer(err)
}
