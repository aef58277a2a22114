package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// renewalCheck is how often the server checks whether certificates have to be renewed.
const renewalCheck = time.Hour

// ErrPortTaken is the error if another process listens on the port.
var ErrPortTaken = errors.New("the port is taken")

// Config is the configuration of one control plane.
type Config struct {
	// Name is the name of the cluster. It is part of the names of its certificate authorities and of its kubeconfigs.
	Name string
	// PKIDir and DataDir are the cluster's own folders for its certificates and its datastore.
	PKIDir, DataDir string
	// Datastore is an endpoint as in datastore.Config.
	Datastore string
	// Prefix is the key prefix of the cluster in a shared datastore. "/registry" if empty.
	Prefix string
	// BindAddress is the IP address to listen on, 127.0.0.1 if empty.
	BindAddress string
	// Hosts are further names in the serving certificate.
	Hosts []string
	// Port is the port to listen on; 0 chooses PreferredPort if it is free, or another free one.
	Port, PreferredPort int
	// Prepare, if set, is called after the certificates have been created and before the API server is. It returns
	// further flags for the kube-apiserver.
	Prepare func(*pki.PKI) (args []string, err error)
	// Services maps the namespace/name of services that this process serves to their URLs, which webhooks and
	// aggregated APIs use. The serving certificate is also valid for the names of these services.
	Services map[string]*url.URL
	// NodeAgents says that machines and nodes may read the OperatingSystemConfigs of Gardener's gardenlet, without objects of RBAC.
	NodeAgents bool
	// StandIns are functions that connect to what answers webhooks: by the namespace/name of Services, while none of their Pods is
	// a process, and by the host:port of URLs.
	StandIns map[string]func(context.Context) (net.Conn, error)
	// Extension adds API groups to the chain.
	Extension Extension
	// AuditLog, if set, is the file to which the API server writes its audit log, with the metadata of requests only.
	AuditLog string
	// DialNode, if set, connects to the address and port of a kubelet. Without it, the API server does not reach Nodes,
	// and does not serve metrics.k8s.io.
	DialNode func(ctx context.Context, address string) (net.Conn, error)
	// PrivateNodes declares that only this process reaches what DialNode connects to: then the API server has no client
	// certificate for kubelets.
	PrivateNodes bool
	// ServesPod, if set, reports whether a process of this machine listens at the address and port of a Pod, in the
	// cluster with the given API server URL. Webhooks and aggregated APIs whose Service has such Pods are called at the
	// loopback address.
	ServesPod func(apiServer string, at netip.AddrPort) bool
	// Authorities, if set, are certificate authorities and keys that the caller manages. Without them, the control
	// plane creates its own.
	Authorities *pki.Authorities
	// KubernetesVersion is the version in /version, with a leading v; the constant KubernetesVersion if empty. It does
	// not change the API.
	KubernetesVersion string
	// ServiceCIDR is the range of the cluster's Services; 10.0.0.0/16 if it is not valid.
	ServiceCIDR netip.Prefix
	// EnableAdmission and DisableAdmission are admission plugins of Kubernetes, in addition to its default.
	EnableAdmission, DisableAdmission []string
	// EncryptionConfig, if set, is the file with the EncryptionConfiguration for the datastore.
	EncryptionConfig string
	// Issuers are the issuers of service account tokens: new tokens have the first one, tokens of all are accepted. The
	// default is the cluster's own name.
	Issuers []string
	// LowMemory is set for one of many control planes in a process, each with a low load: it saves memory at the cost of
	// throughput.
	LowMemory bool
	// Authenticator, if set, wraps Kubernetes' own authenticator.
	Authenticator func(next authenticator.Request) authenticator.Request
	// Revocation, if set, returns a function that reports whether the client certificate of a watch has been revoked
	// since, nil for clients whose certificates are not. It is called every WatchReview.
	Revocation func(*http.Request) (revoked func() bool)
	// WatchReview is how often the API server authorizes a watch of a single object again. It ends the watch if the
	// user is no longer allowed to watch. 0 disables it.
	WatchReview time.Duration
	// Clock is the clock of the landscape; the system clock if nil.
	Clock clock.WithTicker
	// OnPhase, if set, is called after each phase of the start with the time that the phase took.
	OnPhase func(name string, took time.Duration)
}

func (c *Config) complete() {
	c.BindAddress = cmp.Or(c.BindAddress, "127.0.0.1")
	c.Prefix = cmp.Or(c.Prefix, "/registry")
	c.KubernetesVersion = cmp.Or(c.KubernetesVersion, KubernetesVersion)
	if !c.ServiceCIDR.IsValid() {
		c.ServiceCIDR = serviceRange
	}
	if len(c.Issuers) == 0 {
		c.Issuers = []string{issuer}
	}
	c.Clock = cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{})
	if c.OnPhase == nil {
		c.OnPhase = func(string, time.Duration) {}
	}
}

func (c *Config) shared() bool { return datastore.Config{Endpoint: c.Datastore}.Shared() }

func (c *Config) pkiConfig() pki.Config {
	hosts := append(servingHosts(c.BindAddress, c.serviceIP()), c.Hosts...)
	for service := range c.Services {
		namespace, name, _ := strings.Cut(service, "/")
		hosts = append(hosts, name+"."+namespace+".svc")
	}
	return pki.Config{Dir: c.PKIDir, Name: c.Name, Hosts: hosts, Given: c.Authorities, Clock: c.Clock}
}

// serviceIP returns the cluster IP of the service "kubernetes", the first of the range.
func (c *Config) serviceIP() string { return c.ServiceCIDR.Masked().Addr().Next().String() }

// Server is a running control plane.
type Server struct {
	cfg       Config
	pki       *pki.PKI
	datastore *datastore.Datastore
	// connection is nil if the datastore does not run in this process.
	connection *sharedConnection
	chain      *chain
	address    *net.TCPAddr
	clients    *connections
	extraArgs  []string

	cancel context.CancelFunc
	ending sync.Once
	done   chan struct{}
	err    error
}

// Start starts a control plane and returns when it is ready. The context covers the start only. If the start fails,
// everything that was started is stopped again.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	cfg.complete()
	defer quirks.EnterLogOrigin(quirks.LogOrigin{Component: "kube-apiserver", Cluster: cfg.Name})()
	quirks.OutliveShutdowns()
	s := &Server{cfg: cfg, done: make(chan struct{})}
	started := false
	defer func() {
		if err != nil && !started && s.datastore != nil {
			s.connection.close()
			s.datastore.Stop()
		}
	}()

	listener, err := listen(ctx, cfg.BindAddress, cmp.Or(cfg.Port, cfg.PreferredPort))
	if err != nil && cfg.Port == 0 {
		listener, err = listen(ctx, cfg.BindAddress, 0)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && !started {
			_ = listener.Close()
		}
	}()
	s.address = listener.Addr().(*net.TCPAddr)
	s.clients = newConnections(listener)

	phase := phases{clock: cfg.Clock, report: cfg.OnPhase, last: cfg.Clock.Now()}
	if s.datastore, err = datastore.Start(ctx, datastore.Config{Endpoint: cfg.Datastore, Dir: cfg.DataDir}); err != nil {
		return nil, err
	}
	if s.connection, err = s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.agreeOnPKI(ctx); err != nil {
		return nil, err
	}
	phase.end("datastore")
	if s.pki, err = pki.Load(cfg.pkiConfig()); err != nil {
		return nil, err
	}
	if cfg.Prepare != nil {
		if s.extraArgs, err = cfg.Prepare(s.pki); err != nil {
			return nil, err
		}
	}
	audit, err := cfg.auditArgs()
	if err != nil {
		return nil, err
	}
	s.extraArgs = append(s.extraArgs, audit...)
	phase.end("certificates")

	runCtx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if s.chain, err = newChain(runCtx, s, s.clients); err != nil {
		cancel()
		return nil, err
	}
	phase.end("server chain")

	started = true
	go s.run(runCtx)
	if err := s.waitReady(ctx); err != nil {
		s.settle(ctx)
		return nil, errors.Join(err, s.Stop())
	}
	phase.end("API server ready")
	return s, nil
}

// run serves until the context is cancelled or the chain ends.
func (s *Server) run(ctx context.Context) {
	defer s.ended()
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		s.renewCertificates(ctx)
	}()
	s.err = s.chain.run(ctx)
	s.end()
	s.clients.cut()
	<-renewed
	s.connection.close()
	s.datastore.Stop()
}

func (s *Server) renewCertificates(ctx context.Context) {
	ticker := s.cfg.Clock.NewTicker(renewalCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			landscapeclock.Begin(s.cfg.Clock)
			if err := s.pki.Renew(); err != nil {
				logger(s.cfg.Name).Error(err, "Could not renew certificates; trying again in an hour")
			}
			landscapeclock.End(s.cfg.Clock)
		}
	}
}

// Stop stops the server and its datastore, and returns when both have ended.
func (s *Server) Stop() error {
	s.end()
	<-s.done
	return s.err
}

// Done returns a channel that is closed when the server has ended, by Stop or by itself. In the second case, Err
// returns the reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns the error with which the server has ended. Call it after Done is closed.
func (s *Server) Err() error { return s.err }

// URL returns the URL of the API server for clients on this machine.
func (s *Server) URL() string {
	host := s.address.IP.String()
	if s.address.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(s.address.Port))
}

// Shared reports whether other processes may serve the same cluster, on the same datastore.
func (s *Server) Shared() bool { return s.cfg.shared() }

// servesPod returns a function that reports whether a process listens at the address and port of a Pod, nil if Pods are
// no processes.
func (s *Server) servesPod() func(netip.AddrPort) bool {
	if s.cfg.ServesPod == nil {
		return nil
	}
	return func(at netip.AddrPort) bool { return s.cfg.ServesPod(s.URL(), at) }
}

// Port returns the port of the API server.
func (s *Server) Port() int { return s.address.Port }

// PKI returns the PKI of the server.
func (s *Server) PKI() *pki.PKI { return s.pki }

// ClientConfig returns a client configuration for a component. The component has its own client certificate for the
// user and groups, which is stored under the component's name and renewed.
func (s *Server) ClientConfig(component, user string, groups ...string) (*rest.Config, error) {
	client, err := s.pki.Client(component, user, groups...)
	if err != nil {
		return nil, err
	}
	// Without a CA file: client-go caches transports by the names of their files and notices a changed CA only after some
	// time, but a cluster may be created with the name of one that was deleted.
	tls := rest.TLSClientConfig{CAData: s.pki.CAPEM(), CertFile: client.CertFile, KeyFile: client.KeyFile}
	return &rest.Config{Host: s.URL(), UserAgent: "gardenlite/" + component, TLSClientConfig: tls}, nil
}

// StartControllers starts Kubernetes' controllers for the cluster. It sets what the server determines: clients,
// certificates and keys, and the leader election.
func (s *Server) StartControllers(cfg kubecontrollers.Config) (*kubecontrollers.Running, error) {
	defer quirks.EnterLogOrigin(quirks.LogOrigin{Component: "kube-controller-manager", Cluster: s.cfg.Name})()
	cfg.ClientConfig, cfg.Idle, cfg.LeaderElection = s.ClientConfig, s.Idle, cfg.LeaderElection || s.Shared()
	cfg.RootCA, cfg.ServiceAccountKeyFile = s.pki.CAPEM(), s.pki.ServiceAccountKeyFile()
	cfg.SigningCertFile, cfg.SigningKeyFile = s.pki.SigningCertFile(), s.pki.SigningKeyFile()
	return kubecontrollers.Start(cfg)
}

// Kubeconfig returns a kubeconfig with one context of the given name, which is the current one. The certificate and key
// are embedded, so that the file can be moved.
func Kubeconfig(name, url string, caPEM, certPEM, keyPEM []byte) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: caPEM}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}

func listen(ctx context.Context, address string, port int) (net.Listener, error) {
	var lc net.ListenConfig
	hostPort := net.JoinHostPort(address, strconv.Itoa(port))
	listener, err := lc.Listen(ctx, "tcp", hostPort)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: another program listens on %s: stop it, or choose another port with --port (0 takes a free one)",
			ErrPortTaken, hostPort)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listening on %s is not allowed to this user: choose a port above 1023 with --port", hostPort)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is no address of this machine: correct --bind-address", address)
	case err != nil:
		return nil, fmt.Errorf("listening on %s: %w", hostPort, err)
	}
	return listener, nil
}

func servingHosts(bindAddress, serviceIP string) []string {
	hosts := []string{"127.0.0.1", "::1", "localhost", serviceIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	if ip := net.ParseIP(bindAddress); ip != nil && !ip.IsLoopback() && !ip.IsUnspecified() {
		hosts = append(hosts, bindAddress)
	}
	return hosts
}

// phases reports how long each part of the start took.
type phases struct {
	clock  clock.PassiveClock
	report func(string, time.Duration)
	last   time.Time
}

func (p *phases) end(name string) {
	now := p.clock.Now()
	p.report(name, now.Sub(p.last))
	p.last = now
}

// end tells the server to stop. It returns immediately, and may be called again.
func (s *Server) end() {
	s.ending.Do(quirks.BeginShutdown)
	s.cancel()
}

// ended is called when the server has stopped.
func (s *Server) ended() {
	s.end() // the server may have stopped by itself
	quirks.EndShutdown()
	close(s.done)
}
