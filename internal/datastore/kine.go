package datastore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	// emulatedEtcd is the version of etcd that API servers are told: it has what they ask for.
	emulatedEtcd = "3.6.11"
	// maxRequestBytes is etcd's limit for a request, and some room for what is around the value.
	maxRequestBytes = 2 << 20
)

// startKine serves kine's database as etcd on a socket in the folder.
func startKine(ctx context.Context, kineEndpoint, dir string, shared bool) (*Datastore, error) {
	socket, removeSocket, err := fsutil.SocketPath(dir, "kine.sock")
	if err != nil {
		return nil, err
	}
	used, err := use(ctx, kineEndpoint, shared)
	if err != nil {
		removeSocket()
		return nil, err
	}
	listener, err := listenPrivate(ctx, socket)
	if err != nil {
		used.release()
		removeSocket()
		return nil, err
	}
	etcd := newEtcd(used)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := etcd.Serve(listener); err != nil {
			logrus.Errorf("The datastore's server has ended: %v", err)
		}
	})
	return &Datastore{Kine: true, Endpoint: "unix://" + socket, stop: func() {
		etcd.Stop()
		serving.Wait()
		used.release()
		removeSocket()
	}}, nil
}

// newEtcd serves a database with etcd's API. Its limits are etcd's.
func newEtcd(db *database) *grpc.Server {
	etcd := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 2 * time.Hour, Timeout: 20 * time.Second}),
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxSendMsgSize(math.MaxInt32),
	)
	etcdserverpb.RegisterKVServer(etcd, db.bridge)
	etcdserverpb.RegisterLeaseServer(etcd, db.bridge)
	etcdserverpb.RegisterClusterServer(etcd, db.bridge)
	etcdserverpb.RegisterMaintenanceServer(etcd, db.bridge)
	etcdserverpb.RegisterWatchServer(etcd, db.watches)
	alive := health.NewServer()
	alive.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(etcd, alive)
	return etcd
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
