package controlplane

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

const (
	// issuer is the issuer of service account tokens.
	issuer = "https://kubernetes.default.svc.cluster.local"
	// authorizationModes are the authorizers, in the order in which they are asked.
	authorizationModes = "RBAC,Node"
	// kubeletClientUser is the user as whom the API server authenticates to kubelets.
	kubeletClientUser = "system:kube-apiserver:kubelet"
)

// serviceRange is the range of the cluster IPs of services; no network routes to it. A seed has a Service for each
// shoot.
var serviceRange = netip.MustParsePrefix("10.0.0.0/16")

func logger(cluster string) klog.Logger {
	return klog.Background().WithName("controlplane").WithValues("cluster", cluster)
}

// serverOptions returns a kube-apiserver's options, parsed from flags as by its own command.
func serverOptions(ctx context.Context, s *Server, listener net.Listener) (options.CompletedOptions, error) {
	var none options.CompletedOptions
	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	namedFlags := opts.Flags()
	for _, set := range namedFlags.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(s.args()); err != nil {
		return none, fmt.Errorf("setting up the API server: %w", err)
	}
	if dial := s.cfg.DialNode; dial != nil {
		opts.KubeletConfig.Lookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
			return func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }, nil
		}
		if !s.cfg.PrivateNodes {
			client, err := s.pki.KubeletClient(kubeletClientUser)
			if err != nil {
				return none, fmt.Errorf("making the certificate for kubelets: %w", err)
			}
			opts.KubeletConfig.TLSClientConfig.CertFile, opts.KubeletConfig.TLSClientConfig.KeyFile = client.CertFile, client.KeyFile
		}
		opts.KubeletConfig.PreferredAddressTypes = []string{string(corev1.NodeInternalIP)}
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = s.address.Port
	var err error
	if opts.Authentication.ClientCert.CAContentProvider, err = newClientAuthorities(s.pki.ClientCAFile(), s.cfg.Clock); err != nil {
		return none, fmt.Errorf("setting up the API server: %w", err)
	}
	completed, err := opts.Complete(ctx)
	if err != nil {
		return none, fmt.Errorf("setting up the API server: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return none, fmt.Errorf("setting up the API server: %w", utilerrors.NewAggregate(errs))
	}
	return completed, nil
}

func (s *Server) args() []string {
	p := s.pki
	args := []string{
		"--etcd-servers=" + s.datastore.Endpoint,
		"--etcd-prefix=" + s.cfg.Prefix,
		"--bind-address=" + s.cfg.BindAddress,
		"--advertise-address=" + s.advertiseAddress(),
		// No client uses the cluster IP of the service "kubernetes": no network here routes to it.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + s.cfg.ServiceCIDR.Masked().String(),
		"--tls-cert-file=" + p.ServingCertFile(),
		"--tls-private-key-file=" + p.ServingKeyFile(),
		"--client-ca-file=" + p.ClientCAFile(),
		"--service-account-key-file=" + p.ServiceAccountBundleFile(),
		"--service-account-signing-key-file=" + p.ServiceAccountKeyFile(),
		"--requestheader-client-ca-file=" + p.FrontProxyCAFile(),
		"--requestheader-allowed-names=" + pki.FrontProxyClientName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.FrontProxyClientCertFile(),
		"--proxy-client-key-file=" + p.FrontProxyClientKeyFile(),
		"--enable-bootstrap-token-auth=true",
		"--allow-privileged=true", // as in Gardener; a privileged container has no more rights here than any other
	}
	enable := slices.DeleteFunc(append([]string{"NodeRestriction"}, s.cfg.EnableAdmission...),
		func(name string) bool { return slices.Contains(s.cfg.DisableAdmission, name) }) // a name must not be in both
	args = append(args, "--enable-admission-plugins="+strings.Join(enable, ","),
		"--disable-admission-plugins="+strings.Join(s.cfg.DisableAdmission, ","))
	for _, issuer := range s.cfg.Issuers {
		args = append(args, "--service-account-issuer="+issuer)
	}
	if s.cfg.EncryptionConfig != "" {
		args = append(args, "--encryption-provider-config="+s.cfg.EncryptionConfig)
	}
	if s.cfg.LowMemory {
		// Priority and fairness is not needed: the cluster is small, and has few clients.
		args = append(args, "--enable-priority-and-fairness=false", "--profiling=false")
	}
	if s.datastore.Kine {
		// kine compacts its log itself.
		args = append(args, "--etcd-compaction-interval=0")
	}
	// An authorization configuration file replaces the modes; the two flags exclude each other.
	if !slices.ContainsFunc(s.extraArgs, func(arg string) bool { return strings.HasPrefix(arg, "--authorization-config=") }) {
		args = append(args, "--authorization-mode="+authorizationModes)
	}
	return append(args, s.extraArgs...)
}

// advertiseAddress returns the address in the API server's own records; it has to be one of the machine.
func (s *Server) advertiseAddress() string {
	if s.address.IP.IsUnspecified() {
		return "127.0.0.1"
	}
	return s.address.IP.String()
}

// auditPolicy logs every request after its response, and a watch when it begins. It logs metadata only, because
// requests and responses contain secrets and tokens. Waiting for the server to start is left out: it is refused until
// the server has its roles.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["` + healthUser + `"]
- level: Metadata
`

// auditArgs returns the flags for the audit log, none if it is disabled.
func (c *Config) auditArgs() ([]string, error) {
	if c.AuditLog == "" {
		return nil, nil
	}
	policy := filepath.Join(c.PKIDir, "audit-policy.yaml")
	if err := fsutil.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	return []string{"--audit-log-path=" + c.AuditLog, "--audit-policy-file=" + policy, "--audit-log-mode=blocking"}, nil
}

// clientAuthorities reads the certificate authorities of clients from a file. The expiry of client certificates is
// checked with the clock of the landscape.
type clientAuthorities struct {
	*dynamiccertificates.DynamicFileCAContent
	clock clock.PassiveClock
}

var (
	_ dynamiccertificates.CAContentProvider = clientAuthorities{}
	_ dynamiccertificates.ControllerRunner  = clientAuthorities{}
	_ dynamiccertificates.Notifier          = clientAuthorities{}
)

func newClientAuthorities(file string, clock clock.PassiveClock) (dynamiccertificates.CAContentProvider, error) {
	content, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca-bundle", file)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of clients: %w", err)
	}
	return clientAuthorities{content, clock}, nil
}

func (a clientAuthorities) VerifyOptions() (x509.VerifyOptions, bool) {
	options, ok := a.DynamicFileCAContent.VerifyOptions()
	options.CurrentTime = landscapeclock.Real(a.clock)
	return options, ok
}
