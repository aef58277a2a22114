package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/datastore"
)

const (
	// dialTimeout is the timeout for connecting to a datastore of this process.
	dialTimeout = 20 * time.Second
	// requestTimeout is the timeout of all requests with which processes agree on their authorities.
	requestTimeout = 15 * time.Second
	// deleteBatch is how many keys are read at a time to delete the data of a cluster.
	deleteBatch = 500
)

// agreeOnPKI makes all processes that serve a cluster on a shared datastore use the same authorities and the same key
// for service account tokens: the first process writes its own to the datastore, beside the cluster's prefix, and the
// others read them. This reveals nothing new: a process that can read the datastore can also read the cluster's
// Secrets, and write its objects.
func (s *Server) agreeOnPKI(ctx context.Context) error {
	if !s.cfg.shared() || s.cfg.Authorities != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client, err := s.datastore.NewClient(ctx, requestTimeout)
	if err != nil {
		return fmt.Errorf("asking the datastore for the cluster's authorities: %w", err)
	}
	defer client.Close() //nolint:errcheck // nothing of it is needed any more
	key := sharedPKIKey(s.cfg.Prefix)
	current, err := client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("asking the datastore for the cluster's authorities: %w", err)
	}
	if len(current.Kvs) > 0 {
		return s.takePKI(current.Kvs[0].Value)
	}
	own, err := pki.Export(s.cfg.pkiConfig())
	if err != nil {
		return err
	}
	data, err := json.Marshal(own)
	if err != nil {
		return err
	}
	written, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(data))).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return fmt.Errorf("keeping the cluster's authorities in the datastore: %w", err)
	}
	if !written.Succeeded { // another process was faster
		return s.takePKI(written.Responses[0].GetResponseRange().Kvs[0].Value)
	}
	return nil
}

func (s *Server) takePKI(data []byte) error {
	shared := pki.Shared{}
	if err := json.Unmarshal(data, &shared); err != nil {
		return fmt.Errorf("reading the cluster's authorities from the datastore: %w", err)
	}
	return pki.Import(s.cfg.PKIDir, shared)
}

// sharedPKIKey returns the key of the shared authorities. It is beside the prefix of the cluster, which has only
// objects of the cluster below it.
func sharedPKIKey(prefix string) string {
	return path.Join(path.Dir(prefix), "pki", path.Base(prefix))
}

// DeleteData deletes the data of a cluster that does not run from a shared datastore: all keys below its prefix, and its
// authorities. The caller deletes the data in files.
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
	client, err := store.NewClient(ctx, requestTimeout)
	if err != nil {
		return fmt.Errorf("deleting a cluster's data: %w", err)
	}
	defer client.Close() //nolint:errcheck // nothing of it is needed any more
	err = deleteKeys(ctx, client, prefix+"/", clientv3.WithPrefix(), clientv3.WithLimit(deleteBatch))
	if err == nil { // a cluster that is created with this name later does not trust clients of the deleted one
		err = deleteKeys(ctx, client, sharedPKIKey(prefix))
	}
	if err != nil {
		return fmt.Errorf("deleting a cluster's data: %w", err)
	}
	return nil
}

// deleteKeys deletes all keys that a range has.
func deleteKeys(ctx context.Context, client *clientv3.Client, key string, options ...clientv3.OpOption) error {
	for {
		keys, err := client.Get(ctx, key, options...)
		if err != nil || len(keys.Kvs) == 0 {
			return err
		}
		for _, kv := range keys.Kvs {
			// kine can delete only one key at a time, and only if it has not changed.
			_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision)).
				Then(clientv3.OpDelete(string(kv.Key))).Else(clientv3.OpGet(string(kv.Key))).Commit()
			if err != nil {
				return err
			}
		}
	}
}
