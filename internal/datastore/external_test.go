//go:build soak

package datastore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestDatastoresOneDatabaseForAll checks that clusters with one external database use no more connections than the database
// accepts, however much they write concurrently, and that each cluster may stop and start while the others continue.
func TestDatastoresOneDatabaseForAll(t *testing.T) {
	endpoint := datastoretest.StartPostgreSQL(t)
	dir := t.TempDir()
	begin := func(cluster string) (*Datastore, *clientv3.Client) {
		t.Helper()
		store, err := Start(t.Context(), Config{Endpoint: endpoint, Dir: filepath.Join(dir, cluster)})
		if err != nil {
			t.Fatal(err)
		}
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint}, DialTimeout: testutil.Timeout, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return store, client
	}
	end := func(store *Datastore, client *clientv3.Client) {
		_ = client.Close()
		store.Stop()
	}

	stores, clients := [3]*Datastore{}, [3]*clientv3.Client{}
	for i := range stores {
		stores[i], clients[i] = begin(fmt.Sprint(i))
	}
	const each = 200
	writes, ctx := errgroup.WithContext(t.Context())
	for i, client := range clients {
		for n := range each {
			writes.Go(func() error { return create(ctx, client, fmt.Sprintf("/%d/%d", i, n)) })
		}
	}
	if err := writes.Wait(); err != nil {
		t.Fatalf("%d writes at once: %v", each*len(clients), err)
	}

	end(stores[0], clients[0])
	now, err := clients[2].Get(t.Context(), "/1/0")
	if err != nil {
		t.Fatal(err)
	}
	watched := clients[2].Watch(t.Context(), "/1/", clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision+1))
	if err := create(t.Context(), clients[1], "/1/after"); err != nil {
		t.Errorf("after another cluster has ended: %v", err)
	}
	select {
	case seen := <-watched:
		if len(seen.Events) != 1 || string(seen.Events[0].Kv.Key) != "/1/after" {
			t.Errorf("one cluster wrote, and a watch at the other saw %v", seen.Events)
		}
	case <-time.After(testutil.Timeout):
		t.Error("a watch saw nothing of what another cluster wrote")
	}
	end(stores[1], clients[1])
	end(stores[2], clients[2])
	if len(inUse) != 0 {
		t.Errorf("%d databases are left open", len(inUse))
	}

	store, client := begin("0")
	found, err := client.Get(t.Context(), "/0/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || found.Count != each {
		t.Errorf("after a restart: %d keys of %d, %v", found.Count, each, err)
	}
	end(store, client)
}

func create(ctx context.Context, client *clientv3.Client, key string) error {
	done, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpPut(key, "value")).Commit()
	if err == nil && !done.Succeeded {
		err = errors.New(key + " is there already")
	}
	return err
}
