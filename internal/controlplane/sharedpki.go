package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
)

// sharedPKITimeout is the timeout of all requests with which processes agree on their authorities.
const sharedPKITimeout = 15 * time.Second

// agreeOnPKI makes all processes that serve a cluster on a shared datastore use the same authorities and the same key
// for service account tokens: the first process writes its own to the datastore, beside the cluster's prefix, and the
// others read them. This reveals nothing new: a process that can read the datastore can also read the cluster's
// Secrets, and write its objects.
func (s *Server) agreeOnPKI(ctx context.Context) error {
	if !s.cfg.shared() || s.cfg.Authorities != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sharedPKITimeout)
	defer cancel()
	client, err := clientv3.New(
		clientv3.Config{Endpoints: []string{s.datastore.Endpoint}, Context: ctx, DialTimeout: sharedPKITimeout, Logger: zap.NewNop()})
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
