package shootplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
	"github.com/gardenlite/gardenlite/manifests"
)

// The client that creates the objects that the controllers need. It is used at once, and not kept.
const (
	setupUser  = "gardenlite:control-planes"
	setupGroup = "system:masters"
	setupLife  = 10 * time.Minute
)

// running is a control plane that runs.
type running struct {
	desired     DesiredState
	server      *controlplane.Server
	controllers *kubecontrollers.Running
}

// start starts the API server.
func (h *Host) start(ctx context.Context, id string, desired DesiredState) (*running, error) {
	for _, dir := range []string{h.dataDir(id), h.pkiDir(id)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making a folder for the control plane: %w", err)
		}
	}
	encryption, err := h.keepEncryption(id, desired)
	if err != nil {
		return nil, err
	}
	port, err := h.ports.take(id)
	if err != nil {
		return nil, err
	}
	var dial func(context.Context, string) (net.Conn, error)
	if h.cfg.DialNode != nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) { return h.cfg.DialNode(ctx, id, address) }
	}
	standIns := map[string]func(context.Context) (net.Conn, error){}
	if h.cfg.DialWebhooks != nil {
		standIns["gardener-resource-manager."+id+":443"] = func(ctx context.Context) (net.Conn, error) { return h.cfg.DialWebhooks(ctx, id) }
	}
	server, err := controlplane.Start(ctx, controlplane.Config{
		StandIns: standIns, NodeAgents: desired.NodeAgents,
		Name: id, DialNode: dial, ServesPod: h.cfg.ServesPod, PKIDir: h.pkiDir(id), DataDir: h.dataDir(id),
		Datastore: h.cfg.Datastore, Prefix: h.cfg.Prefix(id),
		BindAddress: address, Port: port, Hosts: append([]string{spec.ServiceName + "." + id + ".svc"}, strings.Fields(desired.Hosts)...),
		AuditLog: h.cfg.AuditLog(id), Clock: h.cfg.Clock,
		Authorities: desired.authorities(), KubernetesVersion: desired.Version, ServiceCIDR: desired.ServiceCIDR, LowMemory: true,
		Issuers: strings.Fields(cmp.Or(desired.Issuers, spec.DefaultIssuer)), EncryptionConfig: encryption,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	if err := h.ports.keep(id, port); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &running{desired: desired, server: server}, nil
}

// keepEncryption writes the encryption configuration to a file, and returns its path; "" if there is none.
func (h *Host) keepEncryption(id string, desired DesiredState) (string, error) {
	file, wanted := filepath.Join(h.pkiDir(id), spec.KeyEncryption), desired.Files[spec.KeyEncryption]
	if len(wanted) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("removing the configuration of an encryption that is not desired: %w", err)
		}
		return "", nil
	}
	return file, fsutil.WriteFile(file, wanted, 0o600)
}

func (r *running) ended() bool {
	select {
	case <-r.server.Done():
		return true
	default:
		return false
	}
}

// stop stops the controllers, then the API server, and waits for both.
func (r *running) stop() error {
	r.stopControllers()
	return r.server.Stop()
}

func (r *running) stopControllers() {
	r.controllers.Stop()
	r.controllers = nil
}

// startControllers starts Kubernetes' controllers, after it has created the objects that they need.
func (r *running) startControllers(ctx context.Context, desired DesiredState, deleteVolume func(types.UID) error) error {
	if err := r.ensureObjects(ctx); err != nil {
		return fmt.Errorf("creating what the controllers need: %w", err)
	}
	controllers, err := r.server.StartControllers(kubecontrollers.Config{
		Nodes: true, Workloads: true, PodCIDR: desired.PodCIDR, NodeMask: desired.NodeMask, DeleteVolume: deleteVolume,
		DeploymentSelector: spec.NotControlPlanes, // a shoot can be a seed
		LeaderElection:     desired.NodeAgents,    // Gardener's gardenlet reads their Lease
	})
	if err != nil {
		return fmt.Errorf("starting the controllers: %w", err)
	}
	r.controllers = controllers
	return nil
}

func (r *running) ensureObjects(ctx context.Context) error {
	cert, key, err := r.server.PKI().Issue(setupUser, []string{setupGroup}, setupLife)
	if err != nil {
		return err
	}
	config := &rest.Config{Host: r.server.URL(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: r.server.PKI().CAPEM(), CertData: cert, KeyData: key}}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer http.CloseIdleConnections()
	client, err := dynamic.NewForConfigAndClient(config, http)
	if err != nil {
		return err
	}
	policy, err := manifest.LoadFS(manifests.FS, "shoot")
	if err != nil {
		return err
	}
	if err := manifest.Ensure(ctx, client, policy); err != nil {
		return err
	}
	defaults, err := manifest.LoadFS(manifests.FS, "cluster")
	if err != nil {
		return err
	}
	return manifest.CreateMissing(ctx, client, defaults)
}
