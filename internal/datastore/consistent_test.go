package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/k3s-io/kine/pkg/server"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestEmptyListIsOfItsRevision lists folders while the first key in each of them is written. A list without the key
// must have a revision before the write: otherwise a client that watches from the revision of the list never sees the
// key.
func TestEmptyListIsOfItsRevision(t *testing.T) {
	client := sqliteClient(t)
	for i := range 300 {
		folder := fmt.Sprintf("/%d/", i)
		var written int64
		var lists [8]*clientv3.GetResponse
		var both errgroup.Group
		both.Go(func() (err error) {
			written, err = write(t.Context(), client, folder+"x", 0)
			return err
		})
		for j := range lists {
			both.Go(func() (err error) {
				if j%2 == 0 {
					lists[j], err = client.Get(t.Context(), folder, clientv3.WithPrefix())
				} else {
					lists[j], err = client.Get(t.Context(), folder+"x")
				}
				return err
			})
		}
		if err := both.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, list := range lists {
			if len(list.Kvs) == 0 && list.Header.Revision >= written {
				t.Fatalf("in %s what was read at revision %d misses the key of revision %d", folder, list.Header.Revision, written)
			}
		}
	}
}

// TestPageIsOfItsRevision lists keys page by page while the first of them is written repeatedly. The first page must
// have the revision at which the other pages are then listed.
func TestPageIsOfItsRevision(t *testing.T) {
	client := sqliteClient(t)
	for _, key := range []string{"/keys/a", "/keys/b"} {
		if _, err := write(t.Context(), client, key, 0); err != nil {
			t.Fatal(err)
		}
	}
	written := map[int64]bool{}
	pages := map[int64]int64{} // revisions of the page, and of the key in it
	var both errgroup.Group
	ended := make(chan struct{})
	both.Go(func() error {
		defer close(ended)
		last := int64(0)
		first, err := client.Get(t.Context(), "/keys/a")
		if err == nil {
			last = first.Kvs[0].ModRevision
		}
		for range 300 {
			if last, err = write(t.Context(), client, "/keys/a", last); err != nil {
				return err
			}
			written[last] = true
		}
		return err
	})
	both.Go(func() error {
		for {
			select {
			case <-ended:
				return nil
			default:
			}
			page, err := client.Get(t.Context(), "/keys/", clientv3.WithPrefix(), clientv3.WithLimit(1))
			if err != nil {
				return err
			}
			if !page.More || page.Count != 2 || len(page.Kvs) != 1 {
				return fmt.Errorf("a page of 1 of 2 keys: %+v", page)
			}
			pages[page.Header.Revision] = page.Kvs[0].ModRevision
		}
	})
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	for page, key := range pages {
		for rev := key + 1; rev <= page; rev++ {
			if written[rev] {
				t.Fatalf("a page of revision %d has the key as it was at %d; it was written at %d", page, key, rev)
			}
		}
	}
}

// TestRevisionIsCurrent reads after each of many concurrent writes: a read must not return a revision before the write.
func TestRevisionIsCurrent(t *testing.T) {
	client := sqliteClient(t)
	var all errgroup.Group
	for i := range 8 {
		all.Go(func() error {
			for n := range 50 {
				written, err := write(t.Context(), client, fmt.Sprintf("/%d/%d", i, n), 0)
				if err != nil {
					return err
				}
				nothing, err := client.Get(t.Context(), "/nothing")
				if err != nil {
					return err
				}
				if nothing.Header.Revision < written {
					return fmt.Errorf("read at revision %d, after the write of revision %d", nothing.Header.Revision, written)
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

// TestFailedWriteIsNoConflict checks that a key which the database does not write is not reported as changed by another
// client.
func TestFailedWriteIsNoConflict(t *testing.T) {
	dir := t.TempDir()
	client := sqliteClientIn(t, dir)
	revision, err := write(t.Context(), client, "/a", 0)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := newConnector(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("CREATE TRIGGER full BEFORE INSERT ON kine BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]clientv3.Op{"update": clientv3.OpPut("/a", "new"), "deletion": clientv3.OpDelete("/a")} {
		done, err := client.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision("/a"), "=", revision)).
			Then(change).Else(clientv3.OpGet("/a")).Commit()
		if err == nil || !strings.Contains(err.Error(), errNotWritten.Error()) {
			t.Errorf("%s: %+v, error %v; want %v", name, done, err, errNotWritten)
		}
	}
}

// cutShort is a database whose connection breaks after the first key of a list.
type cutShort struct{ server.Backend }

func (cutShort) CurrentRevision(context.Context) (int64, error) { return 7, nil }

func (cutShort) List(context.Context, string, string, int64, int64, bool) (int64, []*server.KeyValue, error) {
	return 7, []*server.KeyValue{{Key: "/a"}}, nil
}

func (cutShort) Count(_ context.Context, _, _ string, revision int64) (int64, int64, error) {
	return revision, 2, nil
}

func TestListThatIsCutShortFails(t *testing.T) {
	for limit, want := range map[int64]error{0: errCutShort, 1: nil, 2: errCutShort} {
		c := &consistent{Backend: cutShort{}, external: true}
		if _, _, err := c.List(t.Context(), "/", "0", limit, 0, false); !errors.Is(err, want) {
			t.Errorf("a list of 1 of 2 keys with limit %d: error %v, want %v", limit, err, want)
		}
	}
}

func sqliteClient(t *testing.T) *clientv3.Client {
	t.Helper()
	return sqliteClientIn(t, t.TempDir())
}

func sqliteClientIn(t *testing.T, dir string) *clientv3.Client {
	t.Helper()
	store, err := Start(t.Context(), Config{Endpoint: SQLite, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint}, DialTimeout: testutil.Timeout, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// write writes a key that was last written at the given revision, 0 for a new key. It returns the revision of the
// write.
func write(ctx context.Context, client *clientv3.Client, key string, last int64) (int64, error) {
	txn := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", last)).Then(clientv3.OpPut(key, fmt.Sprint(last)))
	if last > 0 {
		txn = txn.Else(clientv3.OpGet(key))
	}
	done, err := txn.Commit()
	if err != nil {
		return 0, err
	}
	if !done.Succeeded {
		return 0, fmt.Errorf("%s is not as it was at revision %d", key, last)
	}
	return done.Header.Revision, nil
}
