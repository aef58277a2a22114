package etcdwatch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/memory"
	"github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/server"
	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/gardenlite/gardenlite/internal/datastore/etcdwatch"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

var backends = map[string]func(context.Context, *sync.WaitGroup, *drivers.Config) (bool, server.Backend, error){
	"memory": memory.New,
	"sqlite": sqlite.New,
}

// forEachBackend runs a test with an etcd client over each kind of backend.
func forEachBackend(t *testing.T, test func(*testing.T, *clientv3.Client, server.Backend)) {
	logrus.SetLevel(logrus.ErrorLevel)
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			var kine sync.WaitGroup
			_, backend, err := open(ctx, &kine, &drivers.Config{
				Endpoint:         "sqlite://" + filepath.Join(t.TempDir(), "state.db") + "?_journal=WAL&cache=shared&_busy_timeout=30000",
				DataSourceName:   filepath.Join(t.TempDir(), "state.db") + "?_journal=WAL&cache=shared&_busy_timeout=30000",
				CompactBatchSize: 1000, PollBatchSize: 500, CompactTimeout: 5 * time.Second, CompactMinRetain: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := backend.Start(ctx); err != nil {
				t.Fatal(err)
			}
			client, stop := serve(t, ctx, backend)
			t.Cleanup(func() {
				stop()
				cancel()
				kine.Wait()
			})
			test(t, client, backend)
		})
	}
}

// serve serves a backend and returns a client of it.
func serve(t *testing.T, ctx context.Context, backend server.Backend) (*clientv3.Client, func()) {
	service, err := etcdwatch.New(ctx, backend, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { service.Run(ctx) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	etcd := grpc.NewServer()
	etcdserverpb.RegisterKVServer(etcd, server.New(backend, "http", time.Minute, "3.6.11"))
	etcdserverpb.RegisterWatchServer(etcd, service)
	done.Go(func() { _ = etcd.Serve(listener) })
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + listener.Addr().String()}, DialTimeout: testutil.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	return client, func() {
		_ = client.Close()
		etcd.Stop()
	}
}

// put writes a key as an API server does, and returns the revision.
func put(t *testing.T, backend server.Backend, key string) int64 {
	t.Helper()
	revision, err := backend.Create(context.Background(), key, []byte("value of "+key), 0)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// expect reads n events and fails if they are not in order.
func expect(t *testing.T, events clientv3.WatchChan, n int) []*clientv3.Event {
	t.Helper()
	var got []*clientv3.Event
	timeout := time.After(testutil.Timeout)
	for len(got) < n {
		select {
		case response := <-events:
			if err := response.Err(); err != nil {
				t.Fatal(err)
			}
			got = append(got, response.Events...)
		case <-timeout:
			t.Fatalf("%d of %d events came", len(got), n)
		}
	}
	for i := 1; i < len(got); i++ {
		if got[i].Kv.ModRevision <= got[i-1].Kv.ModRevision {
			t.Errorf("revision %d follows %d", got[i].Kv.ModRevision, got[i-1].Kv.ModRevision)
		}
	}
	if len(got) > n {
		t.Errorf("%d events came, %d were expected", len(got), n)
	}
	return got
}

func TestWatchesGetWhatIsTheirs(t *testing.T) {
	forEachBackend(t, func(t *testing.T, client *clientv3.Client, backend server.Backend) {
		all := client.Watch(t.Context(), "/a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		one := client.Watch(t.Context(), "/b/1", clientv3.WithCreatedNotify())
		<-all
		<-one
		revision := put(t, backend, "/a/1")
		put(t, backend, "/b/1")
		put(t, backend, "/b/10")
		if _, _, ok, err := backend.Update(t.Context(), "/a/1", []byte("changed"), revision, 0); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if _, _, ok, err := backend.Delete(t.Context(), "/a/1", 0); err != nil || !ok {
			t.Fatal(ok, err)
		}
		got := expect(t, all, 3)
		if !got[0].IsCreate() || !got[1].IsModify() || got[2].Type != clientv3.EventTypeDelete {
			t.Errorf("created, changed, deleted came as %v", got)
		}
		if string(got[2].PrevKv.Value) != "changed" || string(got[1].Kv.Value) != "changed" {
			t.Errorf("values came as %v", got)
		}
		if got := expect(t, one, 1); string(got[0].Kv.Key) != "/b/1" {
			t.Errorf("the other one's event came: %v", got)
		}
	})
}

// TestWatchesStartInThePast starts watches at revisions of a past that is longer than the window that is kept in
// memory.
func TestWatchesStartInThePast(t *testing.T) {
	forEachBackend(t, func(t *testing.T, client *clientv3.Client, backend server.Backend) {
		const n = 1500
		revisions := make([]int64, n)
		for i := range n {
			revisions[i] = put(t, backend, fmt.Sprintf("/a/%d", i))
		}
		for _, i := range []int{0, 1, 700, n - 1000, n - 2, n - 1} {
			events := client.Watch(t.Context(), "/a/", clientv3.WithPrefix(), clientv3.WithRev(revisions[i]))
			if got := expect(t, events, n-i); string(got[0].Kv.Key) != fmt.Sprintf("/a/%d", i) {
				t.Errorf("from %d on: the first is %s", i, got[0].Kv.Key)
			}
		}
	})
}

// TestProgressIsTheTruth writes continuously and requests progress: before a progress notification, a watch must have
// received all events up to its revision.
func TestProgressIsTheTruth(t *testing.T) {
	forEachBackend(t, func(t *testing.T, client *clientv3.Client, backend server.Backend) {
		// As in an API server, all watches share a stream, and so the progress notifications.
		ctx := clientv3.WithRequireLeader(t.Context())
		const writers, writes = 4, 150
		var watches []clientv3.WatchChan
		for w := range writers {
			watches = append(watches, client.Watch(ctx, fmt.Sprintf("/%d/", w), clientv3.WithPrefix(), clientv3.WithCreatedNotify()))
			<-watches[w]
		}
		var mu sync.Mutex
		written := make([][]int64, writers)
		var writing, reading sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := range writes {
					mu.Lock() // so that a revision is recorded before a notification can report it
					written[w] = append(written[w], put(t, backend, fmt.Sprintf("/%d/%d", w, i)))
					mu.Unlock()
				}
			})
			reading.Go(func() {
				seen, notified := 0, 0
				timeout := time.After(testutil.Timeout)
				for seen < writes || notified == 0 {
					select {
					case response := <-watches[w]:
						seen += len(response.Events)
						if !response.IsProgressNotify() {
							continue
						}
						notified++
						mu.Lock()
						should := 0
						for _, revision := range written[w] {
							if revision <= response.Header.Revision {
								should++
							}
						}
						mu.Unlock()
						if seen < should {
							t.Errorf("progress up to %d was announced after %d of %d events", response.Header.Revision, seen, should)
						}
					case <-timeout:
						t.Errorf("%d events, %d notifications", seen, notified)
						return
					}
				}
			})
		}
		stop := make(chan struct{})
		var asking sync.WaitGroup
		asking.Go(func() {
			ticker := time.NewTicker(time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					_ = client.RequestProgress(ctx)
				case <-stop:
					return
				}
			}
		})
		writing.Wait()
		reading.Wait()
		close(stop)
		asking.Wait()
	})
}

// TestCompactedPast starts a watch at a revision that the datastore has compacted.
func TestCompactedPast(t *testing.T) {
	forEachBackend(t, func(t *testing.T, client *clientv3.Client, backend server.Backend) {
		first := put(t, backend, "/a/0")
		var last int64
		for i := 1; i < 1200; i++ {
			last = put(t, backend, "/a/"+strconv.Itoa(i))
		}
		// Once the last event has been received, the first ones are no longer kept in memory.
		expect(t, client.Watch(t.Context(), "/a/", clientv3.WithPrefix(), clientv3.WithRev(last)), 1)
		if _, err := backend.Compact(t.Context(), last-10); err != nil {
			t.Fatal(err)
		}
		if backendCompacted(t, backend, first) == 0 {
			t.Skip("this backend compacts when it pleases")
		}
		events := client.Watch(t.Context(), "/a/", clientv3.WithPrefix(), clientv3.WithRev(first))
		select {
		case response := <-events:
			if !errors.Is(response.Err(), rpctypes.ErrCompacted) || response.CompactRevision == 0 {
				t.Errorf("the watch answers %v, compacted %d", response.Err(), response.CompactRevision)
			}
		case <-time.After(testutil.Timeout):
			t.Error("nothing was answered")
		}
	})
}

func backendCompacted(t *testing.T, backend server.Backend, revision int64) int64 {
	ctx, cancel := context.WithCancel(t.Context())
	result := backend.Watch(ctx, "", "", revision)
	cancel()
	for range result.Events {
	}
	return result.CompactRevision
}

// TestCancelledWatchIsSilent cancels one watch of a stream; the other one continues.
func TestCancelledWatchIsSilent(t *testing.T) {
	forEachBackend(t, func(t *testing.T, client *clientv3.Client, backend server.Backend) {
		ctx, cancel := context.WithCancel(t.Context())
		ends := client.Watch(ctx, "/a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		stays := client.Watch(t.Context(), "/a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		<-ends
		<-stays
		put(t, backend, "/a/1")
		expect(t, ends, 1)
		cancel()
		for range ends {
		}
		put(t, backend, "/a/2")
		expect(t, stays, 2)
	})
}
