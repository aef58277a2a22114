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

// sharedPKITimeout bounds the few requests with which processes agree on their authorities.
const sharedPKITimeout = 15 * time.Second

// agreeOnPKI gives all processes that run a cluster on one shared datastore the same authorities and the same key for
// service account tokens: the first one puts its own there, beside the cluster's prefix, the others take them from there.
// A process that can read the datastore can read the cluster's Secrets as well, and write its objects.
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

// sharedPKIKey is beside the prefix of the cluster's objects, below which is nothing but them.
func sharedPKIKey(prefix string) string {
	return path.Join(path.Dir(prefix), "pki", path.Base(prefix))
}
