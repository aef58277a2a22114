package datastore

import (
	"context"
	"fmt"
	"math"
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
	// emulatedEtcd is the version of etcd that is reported to API servers. It has all features that they use.
	emulatedEtcd = "3.6.11"
	// maxRequestBytes is etcd's limit for a request, plus some room for the parts of the request besides the value.
	maxRequestBytes = 2 << 20
)

// startKine serves kine's database as etcd on a socket in the folder.
func startKine(ctx context.Context, kineEndpoint, dir string, shared bool) (*Datastore, error) {
	used, err := use(ctx, kineEndpoint, shared)
	if err != nil {
		return nil, err
	}
	listener, err := fsutil.ListenSocket(dir, "kine.sock")
	if err != nil {
		used.release()
		return nil, fmt.Errorf("serving the datastore: %w", err)
	}
	etcd := newEtcd(used)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := etcd.Serve(listener); err != nil {
			logrus.Errorf("The datastore's server has ended: %v", err)
		}
	})
	return &Datastore{Kine: true, Endpoint: "unix://" + listener.Addr().String(), stop: func() {
		etcd.Stop()
		serving.Wait()
		used.release()
	}}, nil
}

// newEtcd returns a server with etcd's API for a database. Its limits are etcd's.
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
