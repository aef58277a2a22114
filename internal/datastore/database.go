package datastore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	_ "github.com/k3s-io/kine/pkg/drivers/memory"
	_ "github.com/k3s-io/kine/pkg/drivers/mysql"
	_ "github.com/k3s-io/kine/pkg/drivers/pgsql"
	"github.com/k3s-io/kine/pkg/server"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardenlite/gardenlite/internal/datastore/etcdwatch"
	"github.com/gardenlite/gardenlite/internal/retry"
)

const (
	// progressInterval is how often watches receive unsolicited progress notifications.
	progressInterval = 5 * time.Second
	// maxConnections is the maximum number of connections of a process to an external database, for all its clusters.
	// Three processes stay below the default limits of PostgreSQL (100) and MySQL (151).
	maxConnections = 30
)

// openRetry is the backoff for opening a database again: another process may create the tables at the same time.
var openRetry = wait.Backoff{Steps: 5, Duration: 200 * time.Millisecond}

// driverConfig compacts as a kube-apiserver compacts etcd: what is older than five minutes, also if little is written.
// Otherwise the pages of a list would not expire in a small cluster. The last revision is retained, because kine's
// compaction stops for good once it has reached the current revision.
var driverConfig = drivers.Config{
	CompactMinRetain: 1,
	CompactInterval:  5 * time.Minute,
	CompactTimeout:   5 * time.Second,
	CompactBatchSize: 1000,
	PollBatchSize:    500,
}

// database is kine with one database. All clusters of this process that have their data in the database share it, so
// that it is polled, compacted and watched once, with one connection pool.
type database struct {
	endpoint string
	backend  server.Backend
	bridge   *server.KVServerBridge
	watches  *etcdwatch.Service

	cancel context.CancelFunc
	kine   sync.WaitGroup
	// users is the number of clusters that use the database. It is guarded by opening.
	users int
}

var (
	// opening is held while a database is opened: opening creates missing tables, which fails if done twice at the same
	// time.
	opening sync.Mutex
	// inUse has the open external databases by endpoint. It is guarded by opening.
	inUse = map[string]*database{}
)

// use opens a database, or returns the open one if it is shared. The caller returns it with release.
func use(ctx context.Context, endpoint string, shared bool) (*database, error) {
	opening.Lock()
	defer opening.Unlock()
	if db := inUse[endpoint]; db != nil {
		db.users++
		return db, nil
	}
	config := driverConfig
	config.Endpoint = endpoint
	if shared {
		config.ConnectionPoolConfig.MaxOpen = maxConnections
	}
	kineCtx, cancel := context.WithCancel(context.Background())
	db := &database{endpoint: endpoint, cancel: cancel, users: 1}
	if err := db.open(ctx, kineCtx, config); err != nil {
		cancel() // do not wait: kine may try for minutes before it notices
		return nil, err
	}
	if shared {
		inUse[endpoint] = db
	}
	return db, nil
}

// release ends the use of a database that use returned. The last call closes the database.
func (db *database) release() {
	opening.Lock()
	db.users--
	last := db.users == 0
	if last && inUse[db.endpoint] == db {
		delete(inUse, db.endpoint)
	}
	opening.Unlock()
	if last {
		db.cancel()
		db.kine.Wait()
	}
}

func (db *database) open(ctx, kineCtx context.Context, config drivers.Config) error {
	if err := retry.OnError(ctx, openRetry, madeByOther, func() (err error) {
		db.backend, err = openBackend(ctx, kineCtx, &db.kine, config)
		return err
	}); err != nil {
		return err
	}
	db.bridge = server.New(db.backend, "unix", progressInterval, emulatedEtcd)
	var err error
	if db.watches, err = etcdwatch.New(kineCtx, db.backend, progressInterval); err != nil {
		return err
	}
	db.kine.Go(func() { db.watches.Run(kineCtx) })
	return nil
}

// madeByOther reports whether a table, an index or a database could not be created because another process has just
// created it.
func madeByOther(err error) bool {
	codes := []string{"SQLSTATE 23505", "SQLSTATE 42P04", "SQLSTATE 42P07", "Error 1050", "Error 1061", "Error 1007"}
	return slices.ContainsFunc(codes, func(code string) bool { return strings.Contains(err.Error(), code) })
}

func isExternalSQL(kineEndpoint string) bool {
	return strings.HasPrefix(kineEndpoint, "postgres") || strings.HasPrefix(kineEndpoint, "mysql")
}

// openBackend opens the database. kine would retry for minutes if a database refuses the connection; openBackend
// returns an error after connectTimeout.
func openBackend(ctx, kineCtx context.Context, kine *sync.WaitGroup, config drivers.Config) (server.Backend, error) {
	type result struct {
		backend server.Backend
		err     error
	}
	opened := make(chan result, 1)
	go func() {
		_, backend, err := drivers.New(kineCtx, kine, &config)
		if err == nil {
			err = backend.Start(kineCtx)
		}
		opened <- result{backend, err}
	}()
	timeout := time.NewTimer(connectTimeout)
	defer timeout.Stop()
	select {
	case r := <-opened:
		if r.err != nil {
			return nil, explain(r.err)
		}
		if isExternalSQL(config.Endpoint) {
			return &consistent{Backend: external{r.backend}, external: true}, nil
		}
		return &consistent{Backend: r.backend}, nil
	case <-timeout.C:
		return nil, fmt.Errorf("the datastore did not accept a connection within %s: check the address, the user, the "+
			"password and the database's name in --datastore (the log has the database's own words)", connectTimeout)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
