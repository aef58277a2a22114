package datastore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestCompactsFewRevisions checks that old revisions are compacted in a cluster in which little is written, also after a
// time in which nothing was written.
func TestCompactsFewRevisions(t *testing.T) {
	defer func(before time.Duration) { driverConfig.CompactInterval = before }(driverConfig.CompactInterval)
	driverConfig.CompactInterval = 10 * time.Millisecond
	client := sqliteClient(t)
	var last int64
	for range 5 {
		var revisions [3]int64
		for i := range revisions {
			var err error
			if last, err = write(t.Context(), client, "/key", last); err != nil {
				t.Fatal(err)
			}
			revisions[i] = last
		}
		testutil.Eventually(t, testutil.Timeout, func(ctx context.Context) error {
			if _, err := client.Get(ctx, "/key", clientv3.WithRev(revisions[0])); !errors.Is(err, rpctypes.ErrCompacted) {
				return fmt.Errorf("reading the first of few revisions: %v", err)
			}
			return nil
		})
		if now, err := client.Get(t.Context(), "/key"); err != nil || len(now.Kvs) != 1 || now.Kvs[0].ModRevision != revisions[2] {
			t.Errorf("after the compaction: %v, %v", now, err)
		}
	}
}
