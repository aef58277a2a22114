package controlplane

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gardenlite/gardenlite/internal/datastore"
)

// deleteBatch is how many keys are read at a time to delete the data of a cluster.
const deleteBatch = 500

// DeleteData deletes the data of a cluster that does not run from a shared datastore: all keys below its prefix. The
// caller deletes the data in files.
func DeleteData(ctx context.Context, endpoint, dir, prefix string) error {
	config := datastore.Config{Endpoint: endpoint, Dir: dir}
	if !config.Shared() {
		return nil
	}
	if prefix == "" {
		return fmt.Errorf("deleting a cluster's data: it has no prefix of its own")
	}
	store, err := datastore.Start(ctx, config)
	if err != nil {
		return fmt.Errorf("deleting a cluster's data: %w", err)
	}
	defer store.Stop()
	client, err := clientv3.New(
		clientv3.Config{Endpoints: []string{store.Endpoint}, Context: ctx, DialTimeout: sharedPKITimeout, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("deleting a cluster's data: %w", err)
	}
	defer client.Close() //nolint:errcheck // nothing of it is needed any more
	for {
		keys, err := client.Get(ctx, prefix+"/", clientv3.WithPrefix(), clientv3.WithLimit(deleteBatch))
		if err != nil {
			return fmt.Errorf("reading a cluster's data to delete it: %w", err)
		}
		for _, kv := range keys.Kvs {
			// kine can delete only one key at a time, and only if it has not changed.
			_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision)).
				Then(clientv3.OpDelete(string(kv.Key))).Else(clientv3.OpGet(string(kv.Key))).Commit()
			if err != nil {
				return fmt.Errorf("deleting a cluster's data: %w", err)
			}
		}
		if len(keys.Kvs) == 0 {
			return nil
		}
	}
}
