// Package singlenode is the Node of a cluster that has only one: a garden or a seed. All Pods of the cluster run on it.
// It has no machine. It may import controlplane and the packages of a node.
package singlenode

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	// nodeCPU, nodeMemory and nodePods are the capacity of the Node: more than the components of a cluster request.
	nodeCPU, nodeMemory = "1000", "4Ti"
	nodePods            = 10000
)

// nodeAddress is the address of the Node, in a network of its own that is not reachable.
var nodeAddress = netip.MustParseAddr("10.240.0.4")

// PodNetwork is the range of the addresses of all Pods.
var PodNetwork = netip.MustParsePrefix("10.241.0.0/16")

// Config describes the Node.
type Config struct {
	// Name is the name of the Node, the same as that of the cluster.
	Name         string
	Region, Zone string
	// Processes runs the containers whose images are mapped to programs; nil if all Pods are simulated.
	Processes *process.Runner
	Clock     clock.WithTicker
}

// Node is the Node of a cluster. It exists from the first Pod on.
type Node struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	// kubelet is the listener of the kubelet's API, nil before it listens.
	kubelet atomic.Pointer[memnet.Listener]
}

// Dial connects the API server to the kubelet.
func (n *Node) Dial(_ context.Context, address string) (net.Conn, error) {
	listener := n.kubelet.Load()
	if to, err := netip.ParseAddrPort(address); err != nil || to != netip.AddrPortFrom(nodeAddress, kubelet.Port) || listener == nil {
		return nil, fmt.Errorf("connecting to %s: no kubelet of the cluster answers there", address)
	}
	return listener.Dial(netip.AddrPort{})
}

// listen returns a listener in memory for the kubelet's API, to which only the API server connects.
func (n *Node) listen(port uint16) (net.Listener, error) {
	listener := memnet.Listen(netip.AddrPortFrom(nodeAddress, port))
	n.kubelet.Store(listener)
	return listener, nil
}

// StartWithFirstPod starts the Node of a cluster as soon as there is a Pod. It does not wait for it.
func (n *Node) StartWithFirstPod(server *controlplane.Server, cfg Config) {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	if server.Shared() { // other processes run the cluster as well: each would have a kubelet for the same Node
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
			klog.FromContext(ctx).Error(err, "The Node of a cluster does not run", "node", cfg.Name)
		}
	})
}

// Stop stops the Node's kubelet and waits for it. Nothing happens if there is none.
func (n *Node) Stop() {
	if n.cancel != nil {
		n.cancel()
		n.running.Wait()
	}
}

func (n *Node) run(ctx context.Context, server *controlplane.Server, cfg Config) error {
	cert, key, err := server.PKI().Issue("system:node:"+cfg.Name, []string{"system:nodes"}, nodeLife)
	if err != nil {
		return fmt.Errorf("making the certificate of the Node: %w", err)
	}
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(nodeCPU), corev1.ResourceMemory: resource.MustParse(nodeMemory)}
	config, err := json.Marshal(node.KubeletConfig{
		APIServer: server.URL(), CA: string(server.PKI().CAPEM()), KubernetesVersion: controlplane.KubernetesVersion[1:],
		Region: cfg.Region, Zone: cfg.Zone, OSImage: "gardenlite", Capacity: capacity, MaxPods: nodePods,
	})
	if err != nil {
		return err
	}
	disk := &files{}
	disk.Store(node.PathKubeletConfig, config)
	disk.Store(node.PathKubeletClient, append(cert, key...))
	return kubelet.Run(ctx, host.Host{
		Hostname: cfg.Name, Addresses: []netip.Addr{nodeAddress}, Clock: cfg.Clock, Log: klog.Background(), Journal: io.Discard,
		Listen: n.listen, OnlyAPIServer: true, Metadata: host.Metadata{Cluster: cfg.Name}, Files: disk,
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
