package datastore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/k3s-io/kine/pkg/server"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// broken is the backend of a database that has ended.
type broken struct{ server.Backend }

var errOfDatabase = errors.New("failed to connect to `user=gardenlite database=kine`: 192.0.2.1:5432: dial error")

func (broken) CurrentRevision(context.Context) (int64, error) { return 0, errOfDatabase }
func (broken) DbSize(context.Context) (int64, error)          { return 0, errOfDatabase }
func (broken) Compact(context.Context, int64) (int64, error)  { return 0, errOfDatabase }

func (broken) Get(context.Context, string, int64, bool) (int64, *server.KeyValue, error) {
	return 0, nil, errOfDatabase
}

func (broken) Create(context.Context, string, []byte, int64) (int64, error) { return 0, errOfDatabase }

func (broken) Delete(context.Context, string, int64) (int64, *server.KeyValue, bool, error) {
	return 0, nil, false, errOfDatabase
}

func (broken) List(context.Context, string, string, int64, int64, bool) (int64, []*server.KeyValue, error) {
	return 0, nil, errOfDatabase
}

func (broken) Count(context.Context, string, string, int64) (int64, int64, error) {
	return 0, 0, errOfDatabase
}

func (broken) Update(context.Context, string, []byte, int64, int64) (int64, *server.KeyValue, bool, error) {
	return 0, nil, false, errOfDatabase
}

// TestAnswersOfBrokenDatabase checks that no answer has the address or the user of a database, and that each is known to be
// no fault of the client.
func TestAnswersOfBrokenDatabase(t *testing.T) {
	backend, ctx := &consistent{Backend: external{broken{}}, external: true}, t.Context()
	for name, request := range map[string]func() error{
		"get":     func() error { _, _, err := backend.Get(ctx, "/x", 0, false); return err },
		"list":    func() error { _, _, err := backend.List(ctx, "/", "0", 0, 0, false); return err },
		"count":   func() error { _, _, err := backend.Count(ctx, "/", "0", 0); return err },
		"create":  func() error { _, err := backend.Create(ctx, "/x", nil, 0); return err },
		"update":  func() error { _, _, _, err := backend.Update(ctx, "/x", nil, 1, 0); return err },
		"delete":  func() error { _, _, _, err := backend.Delete(ctx, "/x", 1); return err },
		"size":    func() error { _, err := backend.DbSize(ctx); return err },
		"compact": func() error { _, err := backend.Compact(ctx, 1); return err },
	} {
		err := request()
		if err == nil || strings.Contains(err.Error(), "gardenlite") || strings.Contains(err.Error(), "192.0.2.1") {
			t.Errorf("%s: %v", name, err)
		}
		if message, is := Unavailable(status.Convert(err).Err()); !is || message != ErrNoAnswer.Error() {
			t.Errorf("%s: unavailable %t, %q", name, is, message)
		}
	}
}

// TestUnavailable checks which errors are those of a datastore that does not answer.
func TestUnavailable(t *testing.T) {
	for message, err := range map[string]error{
		"": server.ErrKeyExists, errCutShort.Error(): status.Convert(errCutShort).Err(),
		errNotWritten.Error(): status.Convert(errNotWritten).Err(),
		ErrNoAnswer.Error():   status.Error(codes.Unavailable, "dial tcp 192.0.2.1:2379: connection refused"),
	} {
		if got, is := Unavailable(err); is != (message != "") || is && got != message {
			t.Errorf("%v: %t, %q; want %q", err, is, got, message)
		}
	}
	if _, is := Unavailable(errors.New("x")); is {
		t.Error("any error is one of the datastore")
	}
	for _, err := range []error{nil, context.Canceled, server.ErrCompacted} {
		if got := answer(err); !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}
