package datastore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	_ "github.com/k3s-io/kine/pkg/endpoint" // registers the drivers
	"github.com/k3s-io/kine/pkg/server"
	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/gardenlite/gardenlite/internal/datastore/etcdwatch"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	// emulatedEtcd is the version of etcd that API servers are told: it has what they ask for.
	emulatedEtcd = "3.6.11"
	// progressInterval is how often watches hear how far they are without having asked.
	progressInterval = 5 * time.Second
	// maxRequestBytes is etcd's limit for a request, and some room for what is around the value.
	maxRequestBytes = 2 << 20
)

var driverConfig = drivers.Config{
	CompactInterval:  5 * time.Minute,
	CompactTimeout:   5 * time.Second,
	CompactMinRetain: 1000,
	CompactBatchSize: 1000,
	PollBatchSize:    500,
}

// opening is held while a database is opened: each opening makes the tables that are missing, and databases do not like two
// that do.
var opening sync.Mutex

// Another process may do so at the same time, so an error of the database is tried again.
const (
	openAttempts = 5
	openRetry    = 200 * time.Millisecond
)

func openInTurn(ctx, kineCtx context.Context, kine *sync.WaitGroup, endpoint string) (backend server.Backend, err error) {
	opening.Lock()
	defer opening.Unlock()
	for attempt := 1; ; attempt++ {
		backend, err = openBackend(ctx, kineCtx, kine, endpoint)
		if err == nil || attempt == openAttempts || !madeByOther(err) {
			return backend, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(openRetry):
		}
	}
}

// madeByOther says whether a table, an index or a database could not be made because somebody else just has.
func madeByOther(err error) bool {
	for _, code := range []string{"SQLSTATE 23505", "SQLSTATE 42P04", "SQLSTATE 42P07", "Error 1050", "Error 1061", "Error 1007"} {
		if strings.Contains(err.Error(), code) {
			return true
		}
	}
	return false
}

// startKine serves kine's database as etcd on a socket in the folder.
func startKine(ctx context.Context, kineEndpoint, dir string) (*Datastore, error) {
	socket, removeSocket, err := fsutil.SocketPath(dir, "kine.sock")
	if err != nil {
		return nil, err
	}
	kineCtx, cancel := context.WithCancel(context.Background())
	var kine sync.WaitGroup
	backend, err := openInTurn(ctx, kineCtx, &kine, kineEndpoint)
	if err != nil {
		cancel()
		removeSocket()
		return nil, err
	}
	etcd, err := newEtcd(kineCtx, &kine, backend, socket, watchesItself(kineEndpoint))
	if err != nil {
		cancel()
		kine.Wait()
		removeSocket()
		return nil, err
	}
	return &Datastore{Kine: true, Endpoint: "unix://" + socket, stop: func() {
		etcd.Stop()
		cancel()
		kine.Wait()
		removeSocket()
	}}, nil
}

// watchesItself says that the driver's watches know no common order of events: it has to serve them itself.
func watchesItself(kineEndpoint string) bool { return strings.HasPrefix(kineEndpoint, "nats") }

// openBackend opens the database. kine goes on trying for minutes when a database refuses; a user should hear of it
// sooner.
func openBackend(ctx, kineCtx context.Context, kine *sync.WaitGroup, kineEndpoint string) (server.Backend, error) {
	type result struct {
		backend server.Backend
		err     error
	}
	opened := make(chan result, 1)
	go func() {
		config := driverConfig
		config.Endpoint = kineEndpoint
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
		return r.backend, nil
	case <-timeout.C:
		return nil, fmt.Errorf("the datastore did not accept a connection within %s: check the address, the user, the password and the database's name in --datastore (the log has the database's own words)", connectTimeout)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newEtcd serves a backend with etcd's API. Its limits are etcd's.
func newEtcd(ctx context.Context, kine *sync.WaitGroup, backend server.Backend, socket string, ownWatches bool) (*grpc.Server, error) {
	listener, err := listenPrivate(ctx, socket)
	if err != nil {
		return nil, err
	}
	etcd := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 2 * time.Hour, Timeout: 20 * time.Second}),
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxSendMsgSize(math.MaxInt32),
	)
	bridge := server.New(backend, "unix", progressInterval, emulatedEtcd)
	etcdserverpb.RegisterKVServer(etcd, bridge)
	etcdserverpb.RegisterLeaseServer(etcd, bridge)
	etcdserverpb.RegisterClusterServer(etcd, bridge)
	etcdserverpb.RegisterMaintenanceServer(etcd, bridge)
	if ownWatches {
		etcdserverpb.RegisterWatchServer(etcd, bridge)
	} else {
		watches, err := etcdwatch.New(ctx, backend, progressInterval)
		if err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		etcdserverpb.RegisterWatchServer(etcd, watches)
		kine.Go(func() { watches.Run(ctx) })
	}
	alive := health.NewServer()
	alive.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(etcd, alive)
	kine.Go(func() {
		if err := etcd.Serve(listener); err != nil {
			logrus.Errorf("The datastore's server has ended: %v", err)
		}
	})
	return etcd, nil
}

// listenPrivate listens on a unix socket that only this user may use.
func listenPrivate(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the datastore's old socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening on the datastore's socket: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("keeping the datastore's socket from others: %w", err), listener.Close())
	}
	return listener, nil
}
