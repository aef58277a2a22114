package landscape

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/seed"
	shootplane "github.com/gardenlite/gardenlite/internal/shoot"
)

// controlPlanes is the name of what runs the control planes of shoots in a seed, as those of the other components.
const controlPlanes = "control-planes"

// shootsFolder is between the folder of a landscape's data, or its prefix in a shared datastore, and a shoot's technical ID.
const shootsFolder = "shoots"

// kindShoot is the kind of a shoot's control plane in the status.
const kindShoot = "shoot"

// newShoots makes the host of the control planes of all shoots, which every seed of the process shares.
func (l *Landscape) newShoots() *shootplane.Host {
	if l.cfg.Datastore == datastore.Memory { // no Shoot has survived the restart
		if err := os.RemoveAll(filepath.Join(l.cfg.Dir, dataFolder, shootsFolder)); err != nil {
			klog.Background().Error(err, "Deleting the data of the last run's shoots")
		}
	}
	return shootplane.NewHost(shootplane.HostConfig{
		Dir: l.cfg.Dir, Datastore: l.shootDatastore(),
		Prefix:   func(id string) string { return l.prefix(path.Join(shootsFolder, id)) },
		AuditLog: l.auditLog, DialNode: l.dialNode, ServesPod: l.processes.Serves,
		Clock: l.cfg.Clock, Log: klog.Background().WithName(controlPlanes),
		OnChange: l.showShoot,
	})
}

// dialNode connects to a machine of a shoot, whose network has the shoot's technical ID as its name.
func (l *Landscape) dialNode(ctx context.Context, id, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("connecting to a node: %w", err)
	}
	return l.cloud.Dial(ctx, id, to)
}

// shootDatastore is a landscape's. What is in memory would be lost when a shoot sleeps, so that shoots are in files where
// the landscape is in memory.
func (l *Landscape) shootDatastore() string {
	if l.cfg.Datastore == datastore.Memory {
		return datastore.SQLite
	}
	return l.cfg.Datastore
}

// startControlPlanes starts what runs the control planes of shoots in a seed. To stop it stops them as well.
func (l *Landscape) startControlPlanes(cluster *seed.Cluster) (stop func(), err error) {
	stopRunner, err := l.inSeed(controlPlanes, shootplane.User, cluster, func(name string, config *rest.Config) (runner, error) {
		return shootplane.New(shootplane.Config{
			REST: config, Host: l.shoots, Seed: cluster.Name(), Clock: l.cfg.Clock, Log: klog.Background().WithName(name),
			Lease: l.leaseIfShared(controlPlanes),
		})
	})
	if err != nil {
		return nil, err
	}
	return func() {
		stopRunner()
		l.shoots.Leave(cluster.Name())
	}, nil
}

// showShoot has the status show a control plane.
func (l *Landscape) showShoot(s shootplane.State) {
	shown := Cluster{Kind: kindShoot, Name: s.ID, URL: s.URL, Port: s.Port, KubernetesVersion: s.Version,
		State: shootStates[s.Phase], Message: s.Message}
	if shown.Message == "" {
		shown.Message = s.ControllersMessage
	}
	if shown.KubernetesVersion == "" && s.Phase == shootplane.Ready {
		shown.KubernetesVersion = controlplane.KubernetesVersion
	}
	l.board.update(func(status *Status) {
		i := slices.IndexFunc(status.Clusters, func(c Cluster) bool { return c.Kind == kindShoot && c.Name == s.ID })
		switch {
		case s.Phase == shootplane.Gone && i >= 0:
			status.Clusters = slices.Delete(slices.Clone(status.Clusters), i, i+1)
		case s.Phase == shootplane.Gone:
		case i >= 0:
			status.Clusters[i] = shown
		default:
			status.Clusters = append(status.Clusters, shown)
		}
	})
}

var shootStates = map[shootplane.Phase]string{
	shootplane.Stopped:  StateStopped,
	shootplane.Waiting:  StateStarting,
	shootplane.Starting: StateStarting,
	shootplane.Ready:    StateReady,
	shootplane.Stopping: StateStopping,
	shootplane.Failed:   StateFailed,
}
