// Package clusternodes has the Nodes of a garden or a seed, one in each zone. All Pods of the cluster run on them. They have no
// machines. It may import controlplane and the packages of a node.
package clusternodes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud/memnet"
	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/kubelet"
	"github.com/gardenlite/gardenlite/internal/node/process"
)

const (
	nodeLife = 10 * 365 * 24 * time.Hour
	// nodeCPU, nodeMemory and nodePods are the capacity of a Node: more than the components of a cluster request.
	nodeCPU, nodeMemory = "1000", "4Ti"
	nodePods            = 10000
)

// firstAddress is the address of the first Node, in a network of its own that is not reachable. The others follow.
var firstAddress = netip.MustParseAddr("10.240.0.4")

// PodNetwork is the range of the addresses of all Pods.
var PodNetwork = netip.MustParsePrefix("10.241.0.0/16")

// Mask is the prefix length of the range of a Node: there is room for four.
const Mask = 18

// Config describes the Nodes.
type Config struct {
	// Name is the name of the cluster and of its first Node. The names of the others have their zone behind a dot.
	Name   string
	Region string
	// Zones are the zones of the Nodes, four at most.
	Zones []string
	// Processes runs the containers whose images are mapped to programs; nil if all Pods are simulated.
	Processes *process.Runner
	Clock     clock.WithTicker
}

// Nodes are the Nodes of a cluster. They exist from the first Pod on.
type Nodes struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	// kubelets are the listeners of the kubelets' APIs, *memnet.Listener by netip.AddrPort.
	kubelets sync.Map
}

// Dial connects the API server to a kubelet.
func (n *Nodes) Dial(_ context.Context, address string) (net.Conn, error) {
	if to, err := netip.ParseAddrPort(address); err == nil {
		if listener, ok := n.kubelets.Load(to); ok {
			return listener.(*memnet.Listener).Dial(netip.AddrPort{})
		}
	}
	return nil, fmt.Errorf("connecting to %s: no kubelet of the cluster answers there", address)
}

// StartWithFirstPod starts the Nodes of a cluster as soon as there is a Pod. It does not wait for them.
func (n *Nodes) StartWithFirstPod(server *controlplane.Server, cfg Config) {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	if server.Shared() { // other processes run the cluster as well: each would have kubelets for the same Nodes
		return
	}
	first := make(chan struct{})
	begin := sync.OnceFunc(func() { close(first) })
	if !server.Idle(corev1.SchemeGroupVersion.WithResource("pods").GroupResource(), "", begin) {
		begin()
	}
	n.running.Go(func() {
		select {
		case <-first:
		case <-ctx.Done():
			return
		}
		if err := n.run(ctx, server, cfg); err != nil {
			klog.FromContext(ctx).Error(err, "The Nodes of a cluster do not run", "cluster", cfg.Name)
		}
	})
}

// Stop stops the kubelets and waits for them. Nothing happens if there are none.
func (n *Nodes) Stop() {
	if n.cancel != nil {
		n.cancel()
		n.running.Wait()
	}
}

func (n *Nodes) run(ctx context.Context, server *controlplane.Server, cfg Config) error {
	zones, err := possibleZones(ctx, server, cfg)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	next := firstAddress
	for i, zone := range zones {
		name, address := cfg.Name, next
		if i > 0 {
			name += "." + zone
		}
		group.Go(func() error { return n.runNode(ctx, server, cfg, name, zone, address) })
		next = next.Next()
	}
	return group.Wait()
}

// possibleZones returns the zones that get a Node: the first one alone if its Node has the range of all, as an earlier version has
// made it.
func possibleZones(ctx context.Context, server *controlplane.Server, cfg Config) ([]string, error) {
	config, err := server.ClientConfig("nodes", "system:node:"+cfg.Name, "system:nodes")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the Nodes: %w", err)
	}
	first, err := client.CoreV1().Nodes().Get(ctx, cfg.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return cfg.Zones, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Node %s: %w", cfg.Name, err)
	}
	if first.Spec.PodCIDR == PodNetwork.String() {
		return cfg.Zones[:1], nil
	}
	return cfg.Zones, nil
}

func (n *Nodes) runNode(ctx context.Context, server *controlplane.Server, cfg Config, name, zone string, address netip.Addr) error {
	cert, key, err := server.PKI().Issue("system:node:"+name, []string{"system:nodes"}, nodeLife)
	if err != nil {
		return fmt.Errorf("making the certificate of the Node: %w", err)
	}
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(nodeCPU), corev1.ResourceMemory: resource.MustParse(nodeMemory)}
	config, err := json.Marshal(node.KubeletConfig{
		APIServer: server.URL(), CA: string(server.PKI().CAPEM()), KubernetesVersion: controlplane.KubernetesVersion[1:],
		Region: cfg.Region, Zone: zone, OSImage: "gardenlite", Capacity: capacity, MaxPods: nodePods,
	})
	if err != nil {
		return err
	}
	disk := &files{}
	disk.Store(node.PathKubeletConfig, config)
	disk.Store(node.PathKubeletClient, append(cert, key...))
	return kubelet.Run(ctx, host.Host{
		Hostname: name, Addresses: []netip.Addr{address}, Clock: cfg.Clock, Log: klog.Background(), Journal: io.Discard,
		Listen: func(port uint16) (net.Listener, error) { // in memory: only the API server connects
			at := netip.AddrPortFrom(address, port)
			listener := memnet.Listen(at)
			n.kubelets.Store(at, listener)
			return listener, nil
		},
		OnlyAPIServer: true, Metadata: host.Metadata{Cluster: cfg.Name}, Files: disk,
	}, cfg.Processes)
}

// files are the files of a Node without a disk, by their paths.
type files struct{ sync.Map }

func (f *files) ReadFile(path string) ([]byte, error) {
	data, ok := f.Load(path)
	if !ok {
		return nil, fmt.Errorf("reading %s: %w", path, fs.ErrNotExist)
	}
	return data.([]byte), nil
}

func (f *files) WriteFile(path string, data []byte, _ fs.FileMode) error {
	f.Store(path, data)
	return nil
}

func (f *files) Remove(path string) error {
	f.Delete(path)
	return nil
}

func (f *files) Sync() error { return nil }
