package seedhost

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/shootplane"
	"github.com/gardenlite/gardenlite/internal/statedir"
	"github.com/gardenlite/gardenlite/internal/supervisor"
)

// controlPlanes is the name of the component that runs the control planes of shoots in a seed.
const controlPlanes = "control-planes"

// kindShoot is the kind of a shoot's control plane in the status.
const kindShoot = "shoot"

// newShoots creates the host of the control planes of all shoots, which every seed of the process shares.
func (h *Host) newShoots() *shootplane.Host {
	return shootplane.NewHost(shootplane.HostConfig{
		Dir: h.cfg.Dir, Keeper: h.keeper(), Datastore: h.shootDatastore(),
		Prefix: func(id string) string { return h.prefix(path.Join(statedir.ShootsFolder, id)) },
		Garden: h.owners, AuditLog: h.auditLog, DialNode: h.dialNode, ServesPod: h.processes.ListensAt, DialWebhooks: h.dialWebhooks,
		DeleteVolume: h.processes.DeleteVolume, DeleteVolumes: h.processes.DeleteVolumes,
		Clock: h.cfg.Clock, Log: klog.Background().WithName(controlPlanes),
		OnChange: h.showShoot,
	})
}

// dialNode connects to a machine of a shoot, whose network has the shoot's technical ID as its name.
func (h *Host) dialNode(ctx context.Context, id, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("connecting to a node: %w", err)
	}
	w := h.work.Load()
	if w == nil {
		return nil, errNotLeading
	}
	return w.cloud.Dial(ctx, id, to)
}

// apiServerOf returns the URL of the API server of a shoot, whose machines are in the network of that name, "" if it does not run.
func (h *Host) apiServerOf(network string) string {
	if status, ok := h.shoots.Status(network); ok && status.Phase == shootplane.Ready {
		return status.URL
	}
	return ""
}

// shootDatastore returns the datastore of shoots. If the landscape is in memory, shoots are in files, because a hibernated
// shoot would lose data in memory.
func (h *Host) shootDatastore() string {
	if h.cfg.Datastore == datastore.Memory {
		return datastore.SQLite
	}
	return h.cfg.Datastore
}

// startControlPlanes starts the component that runs the control planes of shoots in a seed. Stopping it stops these, too.
func (h *Host) startControlPlanes(cluster *seed.Cluster) (stop func(), err error) {
	newRunner := func(name string, config *rest.Config) (supervisor.Runner, error) {
		return shootplane.New(shootplane.Config{
			REST: config, Host: h.shoots, Seed: cluster.Name(), Clock: h.cfg.Clock, Log: klog.Background().WithName(name),
		})
	}
	stopRunner, err := h.startInSeed(controlPlanes, shootplane.User, cluster, newRunner)
	if err != nil {
		return nil, err
	}
	return func() {
		stopRunner()
		h.shoots.StopSeed(cluster.Name())
	}, nil
}

// showShoot shows the state of a control plane in the status.
func (h *Host) showShoot(s shootplane.Status) {
	shown := control.Cluster{Kind: kindShoot, Name: s.ID, URL: s.URL, Port: s.Port, KubernetesVersion: s.Version,
		State: shootStates[s.Phase], Message: s.Message}
	shown.Message = cmp.Or(shown.Message, s.ControllersMessage)
	if shown.KubernetesVersion == "" && s.Phase == shootplane.Ready {
		shown.KubernetesVersion = controlplane.KubernetesVersion
	}
	h.cfg.Status.Update(func(status *control.Status) {
		i := slices.IndexFunc(status.Clusters, func(c control.Cluster) bool { return c.Kind == kindShoot && c.Name == s.ID })
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
	shootplane.Stopped:  control.StateStopped,
	shootplane.Waiting:  control.StateStarting,
	shootplane.Starting: control.StateStarting,
	shootplane.Ready:    control.StateReady,
	shootplane.Stopping: control.StateStopping,
	shootplane.Failed:   control.StateFailed,
}

// dialWebhooks connects to the webhooks of the gardener-resource-manager of a shoot, in the seed that has its control plane.
func (h *Host) dialWebhooks(ctx context.Context, id string) (net.Conn, error) {
	if status, ok := h.shoots.Status(id); ok {
		if u := h.find(status.Owner); u != nil {
			return u.cluster.DialWebhooks(ctx, id)
		}
	}
	return nil, fmt.Errorf("the control plane of the shoot %s is in no seed of this process", id)
}
