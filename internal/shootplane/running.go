package shootplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// The client with which a control plane gets the policy that its controllers need. It is used at once, and not kept.
const (
	policyUser  = "gardenlite:control-planes"
	policyGroup = "system:masters"
	policyLife  = 10 * time.Minute
)

// running is a control plane that runs.
type running struct {
	order       Order
	server      *controlplane.Server
	controllers *kubecontrollers.Running
}

// start starts the API server of an order.
func (h *Host) start(ctx context.Context, id string, order Order) (*running, error) {
	for _, dir := range []string{h.dataDir(id), h.pkiDir(id)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making a folder for the control plane: %w", err)
		}
	}
	encryption, err := h.keepEncryption(id, order)
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
	server, err := controlplane.Start(ctx, controlplane.Config{
		Name: id, DialNode: dial, ServesPod: h.cfg.ServesPod, PKIDir: h.pkiDir(id), DataDir: h.dataDir(id),
		Datastore: h.cfg.Datastore, Prefix: h.cfg.Prefix(id),
		BindAddress: address, Port: port, AuditLog: h.cfg.AuditLog(id), Clock: h.cfg.Clock,
		Authorities: order.authorities(), KubernetesVersion: order.Version, ServiceCIDR: order.ServiceCIDR, Dense: true,
		Issuers: strings.Fields(cmp.Or(order.Issuers, spec.DefaultIssuer)), EncryptionConfig: encryption,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	if err := h.ports.keep(id, port); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &running{order: order, server: server}, nil
}

// keepEncryption writes how the API server is to encrypt what it keeps to a file, and returns its name; "" if it is not to.
func (h *Host) keepEncryption(id string, order Order) (string, error) {
	file, wanted := filepath.Join(h.pkiDir(id), spec.KeyEncryption), order.Files[spec.KeyEncryption]
	if len(wanted) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("removing the configuration of an encryption that was not ordered: %w", err)
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

// startControllers starts Kubernetes' controllers, with what they may do.
func (r *running) startControllers(ctx context.Context, podCIDR netip.Prefix) error {
	if err := r.ensurePolicy(ctx); err != nil {
		return fmt.Errorf("putting in place what the controllers may do: %w", err)
	}
	p := r.server.PKI()
	controllers, err := kubecontrollers.Start(kubecontrollers.Config{
		ClientConfig: r.server.ClientConfig,
		Nodes:        true,
		Workloads:    true,
		PodCIDR:      podCIDR,
		// In a shoot that is a seed, those are control planes, which the seed's Host runs.
		DeploymentSelector:    spec.LabelGardenRole + "!=" + spec.GardenRoleControlPlane,
		Idle:                  r.server.Idle,
		RootCA:                p.CAPEM(),
		SigningCertFile:       p.SigningCertFile(),
		SigningKeyFile:        p.SigningKeyFile(),
		ServiceAccountKeyFile: p.ServiceAccountKeyFile(),
		LeaderElection:        r.server.Shared(),
	})
	if err != nil {
		return fmt.Errorf("starting the controllers: %w", err)
	}
	r.controllers = controllers
	return nil
}

func (r *running) ensurePolicy(ctx context.Context) error {
	cert, key, err := r.server.PKI().Issue(policyUser, []string{policyGroup}, policyLife)
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
	client, err := kubernetes.NewForConfigAndClient(config, http)
	if err != nil {
		return err
	}
	role, binding := kubecontrollers.NodesPolicy()
	roles, bindings := client.RbacV1().ClusterRoles(), client.RbacV1().ClusterRoleBindings()
	currentRole, err := roles.Get(ctx, role.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = roles.Create(ctx, role, metav1.CreateOptions{})
	case err == nil && !equality.Semantic.DeepEqual(currentRole.Rules, role.Rules):
		currentRole.Rules = role.Rules
		_, err = roles.Update(ctx, currentRole, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	currentBinding, err := bindings.Get(ctx, binding.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = bindings.Create(ctx, binding, metav1.CreateOptions{})
	case err == nil && !equality.Semantic.DeepEqual(currentBinding.Subjects, binding.Subjects):
		currentBinding.Subjects = binding.Subjects
		_, err = bindings.Update(ctx, currentBinding, metav1.UpdateOptions{})
	}
	return err
}
