package datastore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	_ "github.com/k3s-io/kine/pkg/endpoint" // registers the drivers
	"github.com/k3s-io/kine/pkg/server"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/gardenlite/gardenlite/internal/datastore/etcdwatch"
)

const (
	// progressInterval is how often watches hear how far they are without having asked.
	progressInterval = 5 * time.Second
	// maxConnections is how many connections a process has at most to a database outside, for all its clusters. Three
	// processes stay below the 100 that PostgreSQL accepts as it comes, and MySQL's 151.
	maxConnections = 30
)

// Another process may make the tables at the same time, so an error of the database is tried again.
const (
	openAttempts = 5
	openRetry    = 200 * time.Millisecond
)

var driverConfig = drivers.Config{
	CompactInterval:  5 * time.Minute,
	CompactTimeout:   5 * time.Second,
	CompactMinRetain: 1000,
	CompactBatchSize: 1000,
	PollBatchSize:    500,
}

// database is kine over one database: all clusters of this process that have their data in it use it together, so that
// it is polled, compacted and watched once, with one pool of connections.
type database struct {
	endpoint string
	backend  server.Backend
	bridge   *server.KVServerBridge
	watches  etcdserverpb.WatchServer

	cancel context.CancelFunc
	kine   sync.WaitGroup
	// users are how many clusters use it. Guarded by opening.
	users int
}

var (
	// opening is held while a database is opened: each opening makes the tables that are missing, and databases do not
	// like two that do.
	opening sync.Mutex
	// inUse are the databases outside that are open, by their endpoints. Guarded by opening.
	inUse = map[string]*database{}
)

// use opens a database, or takes part in the one that is open if it is shared. It is given back with release.
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
		cancel() // and no waiting: kine may try for minutes before it notices
		return nil, err
	}
	if shared {
		inUse[endpoint] = db
	}
	return db, nil
}

// release gives back what use returned. The last one closes it.
func (db *database) release() {
	opening.Lock()
	db.users--
	last := db.users == 0
	if last && inUse[db.endpoint] == db {
		delete(inUse, db.endpoint)
	}
	opening.Unlock()
	if last {
		db.close()
	}
}

func (db *database) close() {
	db.cancel()
	db.kine.Wait()
}

func (db *database) open(ctx, kineCtx context.Context, config drivers.Config) (err error) {
	for attempt := 1; ; attempt++ {
		db.backend, err = openBackend(ctx, kineCtx, &db.kine, config)
		if err == nil {
			break
		}
		if attempt == openAttempts || !madeByOther(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(openRetry):
		}
	}
	db.bridge = server.New(db.backend, "unix", progressInterval, emulatedEtcd)
	if watchesItself(config.Endpoint) {
		db.watches = db.bridge
		return nil
	}
	watches, err := etcdwatch.New(kineCtx, db.backend, progressInterval)
	if err != nil {
		return err
	}
	db.watches = watches
	db.kine.Go(func() { watches.Run(kineCtx) })
	return nil
}

// madeByOther says whether a table, an index or a database could not be made because another process has just made it.
func madeByOther(err error) bool {
	for _, code := range []string{"SQLSTATE 23505", "SQLSTATE 42P04", "SQLSTATE 42P07", "Error 1050", "Error 1061", "Error 1007"} {
		if strings.Contains(err.Error(), code) {
			return true
		}
	}
	return false
}

// watchesItself says that the driver's watches know no common order of events: it has to serve them itself.
func watchesItself(kineEndpoint string) bool { return strings.HasPrefix(kineEndpoint, "nats") }

// openBackend opens the database. kine continues trying for minutes when a database refuses; a user should hear of it
// sooner.
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
		return &consistent{Backend: r.backend}, nil
	case <-timeout.C:
		return nil, fmt.Errorf("the datastore did not accept a connection within %s: check the address, the user, the "+
			"password and the database's name in --datastore (the log has the database's own words)", connectTimeout)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
