//go:build soak

package e2e

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
)

// TestDatastoresShoot: if a landscape's data is in a shared datastore, a Shoot's data is there too, beside
// the garden's and those of the seeds. It survives a kill, and is gone when the Shoot is deleted.
func TestDatastoresShoot(t *testing.T) {
	t.Parallel()
	endpoint := datastoretest.StartEtcd(t)
	l := newLandscape(t, "--datastore", endpoint)
	s := l.newShoot(t, "shared", func(spec map[string]any) {
		spec["seedName"] = "local"
		spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)["minimum"] = 1
	})
	before := addresses(s.waitForSucceeded(t))
	client := clientOf(t, s.admin(t))
	nodes := s.nodes(t, client, 1)
	keep(t, client)
	token := serviceAccountToken(t, client)
	if keys := keysOf(t, endpoint, "/shoots/"+s.id()+"/"); keys == 0 {
		t.Error("the datastore has nothing of the Shoot")
	}

	l.kill()
	l.up(t, "--datastore", endpoint)
	eventually(t, shootTimeout, func(context.Context) error {
		_, err := client.Discovery().ServerVersion()
		return err
	})
	isKept(t, client)
	if after := addresses(s.waitForSucceeded(t)); !reflect.DeepEqual(before, after) {
		t.Errorf("the addresses were %v and are %v", before, after)
	}
	if after := s.nodes(t, client, 1); !reflect.DeepEqual(nodes, after) {
		t.Errorf("the nodes were %v and are %v", nodes, after)
	}
	s.wantToken(t, token)

	s.delete(t)
	s.waitGone(t)
	eventually(t, waitTimeout, func(context.Context) error {
		if keys := keysOf(t, endpoint, "/shoots/"+s.id()+"/"); keys > 0 {
			return fmt.Errorf("of a Shoot that is gone the datastore has %d keys", keys)
		}
		return nil
	})
	l.expectNothingForbidden(t)
}

// keysOf counts the keys of etcd that have a part in their name.
func keysOf(t *testing.T, endpoint, part string) (count int) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second, Context: t.Context()})
	must(t, err)
	defer client.Close()
	all, err := client.Get(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	must(t, err)
	for _, pair := range all.Kvs {
		if strings.Contains(string(pair.Key), part) {
			count++
		}
	}
	return count
}
