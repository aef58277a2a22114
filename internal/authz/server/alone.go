package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/usage"
)

const (
	name = "admission-controller"
	// ClientUser is the user in the client certificate with which a kube-apiserver calls the webhooks.
	ClientUser = "gardenlite:apiserver"
	// ClientName is the name of this certificate in a PKI.
	ClientName = "apiserver-webhooks"

	portFile  = "port" // has the port for the next start
	pkiFolder = "pki"
	// The files of the client certificate, beside those for a kube-apiserver.
	clientCertFile = "client.crt"
	clientKeyFile  = "client.key"
	// gardenTimeout is how long the garden may take for its first answer.
	gardenTimeout = 15 * time.Second
	renewalPeriod = time.Hour
)

// StandaloneConfig is the configuration of an admission controller for a garden elsewhere.
type StandaloneConfig struct {
	// Kubeconfig is the kubeconfig of the garden.
	Kubeconfig string
	// Dir is the state folder, which contains the certificates that the controller creates itself.
	Dir string
	// BindAddress and Port are the address on which the controller listens. Port 0 chooses a free one, and the same one
	// at the next start.
	BindAddress string
	Port        int
	// AdvertiseAddress is the name or IP address under which the garden's API server reaches the controller;
	// BindAddress if empty.
	AdvertiseAddress string
	// CertFile, KeyFile and CAFile are the serving certificate, its key, and its authority; ClientCAFile has the
	// authorities of clients. Without them, the controller creates its own.
	CertFile, KeyFile, CAFile, ClientCAFile string
	// Debug enables the page with the graph.
	Debug bool
	// WriteConfig, if set, is the folder to which the files for the API server are written.
	WriteConfig string
	// Install writes the configurations of the webhooks to the garden.
	Install bool
	// ResourceAdmission, if set, is the file with the limits of resources.
	ResourceAdmission string
	// Reads says what gardenlets and extensions may read.
	Reads Reads
	// OnReady is called when the controller serves, OnWait with the resources for which it waits.
	OnReady func(StandaloneStatus)
	OnWait  func(missing string)
}

// StandaloneStatus describes an admission controller for a garden elsewhere.
type StandaloneStatus struct {
	Garden string // the address of the garden's API server
	URL    string // the address of the webhooks
	Dir    string
	// Args are the flags for the garden's API server, if files were written; MissingClient are the files of the client
	// certificate that the user has to put beside them.
	Args          []string
	MissingClient []string
	Installed     bool
	Page          string // the address of the page with the graph, with Debug
	// Open is true if there is no authority for clients: everyone who reaches the controller can call it.
	Open            bool
	Vertices, Edges int
}

// Standalone is an admission controller for a garden elsewhere.
type Standalone struct {
	cfg    StandaloneConfig
	garden *rest.Config

	cert, key string
	caPEM     []byte         // the authority of the serving certificate
	clients   *x509.CertPool // nil if everyone may call
	own       *pki.PKI       // nil if the certificates are given
	client    pki.Client     // the API server's client certificate, if own signs for clients
}

// NewStandalone validates the configuration, and checks that the garden answers. It writes nothing.
func NewStandalone(ctx context.Context, cfg StandaloneConfig) (*Standalone, error) {
	if err := cfg.validate(); err != nil {
		return nil, &usage.Error{Err: err}
	}
	cfg.AdvertiseAddress = cmp.Or(cfg.AdvertiseAddress, cfg.BindAddress)
	garden, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
	if err != nil {
		return nil, usage.Errorf("--kubeconfig: %w", err)
	}
	garden.UserAgent = "gardenlite/" + name
	probe := rest.CopyConfig(garden)
	probe.Timeout = gardenTimeout
	client, err := discovery.NewDiscoveryClientForConfig(probe)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", cfg.Kubeconfig, err)
	}
	if err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("the garden at %s does not answer: start it, or correct --kubeconfig: %w", garden.Host, err)
	}
	if err := client.RESTClient().Get().AbsPath("/apis/" + v1beta1.SchemeGroupVersion.String()).Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("%s is no garden, it does not serve %s: correct --kubeconfig: %w", garden.Host, v1beta1.SchemeGroupVersion, err)
	}
	return &Standalone{cfg: cfg, garden: garden}, nil
}

func (c *StandaloneConfig) validate() error {
	var errs []error
	refuse := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	ip := net.ParseIP(c.BindAddress)
	refuse(c.Kubeconfig == "", "--kubeconfig: say which garden")
	errs = append(errs, usage.CheckBindAddress(c.BindAddress))
	refuse(ip != nil && ip.IsUnspecified() && (c.AdvertiseAddress == "" || c.AdvertiseAddress == c.BindAddress),
		"--bind-address %s is every address of this machine: say with --advertise-address under which one the garden reaches it", c.BindAddress)
	errs = append(errs, usage.CheckPort(c.Port))
	refuse((c.CertFile == "") != (c.KeyFile == ""), "--tls-cert-file and --tls-private-key-file go together")
	refuse(c.CAFile != "" && c.CertFile == "", "--tls-ca-file says what signed --tls-cert-file, so it needs that")
	refuse(c.CertFile != "" && c.ClientCAFile == "" && ip != nil && !ip.IsLoopback(),
		"--client-ca-file is missing: without it all who reach the port may ask what gardenlets may do; that is allowed on loopback only")
	return errors.Join(errs...)
}

// Run serves until the context ends. The state folder must exist, and no other process may use it.
func (a *Standalone) Run(parent context.Context) error {
	if err := a.loadCertificates(); err != nil {
		return err
	}
	listener, err := a.listen()
	if err != nil {
		return err
	}
	controller, status, err := a.prepare(parent, listener)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	group, ctx := errgroup.WithContext(parent)
	group.Go(func() error { return controller.Run(ctx) })
	group.Go(func() error { return a.renew(ctx) })
	group.Go(func() error {
		err := controller.WaitSynced(ctx, a.cfg.OnWait)
		if err == nil {
			status.Vertices, status.Edges = controller.graph.Len()
			a.cfg.OnReady(status)
		}
		return err
	})
	if err := group.Wait(); parent.Err() == nil {
		return err
	}
	return nil // stopped by the caller
}

// prepare writes the API server's files, creates the controller, and installs the admission webhook.
func (a *Standalone) prepare(ctx context.Context, listener net.Listener) (*Controller, StandaloneStatus, error) {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	status := StandaloneStatus{
		Garden: a.garden.Host, URL: "https://" + net.JoinHostPort(a.cfg.AdvertiseAddress, port), Dir: a.cfg.Dir, Open: a.clients == nil,
	}
	if a.cfg.WriteConfig != "" {
		if err := a.writeConfig(&status); err != nil {
			return nil, status, fmt.Errorf("--write-config: %w", err)
		}
	}
	var limits *Limits
	if a.cfg.ResourceAdmission != "" {
		var err error
		if limits, err = ReadLimits(a.cfg.ResourceAdmission); err != nil {
			return nil, status, fmt.Errorf("--resource-admission-configuration: %w", err)
		}
	}
	cfg := Config{
		REST: a.garden, Listener: listener, CertFile: a.cert, KeyFile: a.key, CAPEM: a.caPEM, ClientCAs: a.clients,
		Debug: a.cfg.Debug, Limits: limits, Reads: a.cfg.Reads, Log: klog.Background().WithName(name),
	}
	if a.client.User != "" {
		cfg.ClientNames = []string{a.client.User} // the authority also signs for other users
	}
	controller, err := New(cfg)
	if err != nil {
		return nil, status, err
	}
	status.Page = controller.GraphURL()
	if a.cfg.Install {
		// Before the authorizer allows anything: the restriction checks what is then written.
		if err := Install(ctx, a.garden, status.URL, a.caPEM, limits); err != nil {
			return nil, status, err
		}
		status.Installed = true
	}
	return controller, status, nil
}

func (a *Standalone) loadCertificates() error {
	a.cert, a.key = a.cfg.CertFile, a.cfg.KeyFile
	if a.cert == "" {
		own, err := pki.Load(pki.Config{Dir: filepath.Join(a.cfg.Dir, pkiFolder), Name: name, Hosts: a.hosts(), Clock: clock.RealClock{}})
		if err != nil {
			return err
		}
		a.own, a.cert, a.key, a.caPEM = own, own.ServingCertFile(), own.ServingKeyFile(), own.CAPEM()
	} else if err := a.loadUserCertificate(); err != nil {
		return &usage.Error{Err: err}
	}
	var err error
	switch {
	case a.cfg.ClientCAFile != "":
		if a.clients, _, err = readAuthorities("--client-ca-file", a.cfg.ClientCAFile); err != nil {
			return &usage.Error{Err: err}
		}
	case a.own != nil:
		a.clients = x509.NewCertPool()
		a.clients.AppendCertsFromPEM(a.caPEM)
		a.client, err = a.own.Client(ClientName, ClientUser)
	}
	return err
}

// loadUserCertificate reads the user's certificate. Without an authority, clients trust the certificate itself.
func (a *Standalone) loadUserCertificate() (err error) {
	if _, err := tls.LoadX509KeyPair(a.cert, a.key); err != nil {
		return fmt.Errorf("--tls-cert-file and --tls-private-key-file: %w", err)
	}
	_, a.caPEM, err = readAuthorities("--tls-ca-file", cmp.Or(a.cfg.CAFile, a.cert))
	return err
}

func readAuthorities(flag, file string) (*x509.CertPool, []byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, nil, fmt.Errorf("%s %s has no certificate", flag, file)
	}
	return pool, data, nil
}

func (a *Standalone) hosts() []string {
	hosts := []string{"127.0.0.1", "::1", "localhost"}
	for _, host := range []string{a.cfg.BindAddress, a.cfg.AdvertiseAddress} {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() && !ip.IsUnspecified() {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// listen uses the port of the last start if it is free and no other is configured, because the API server's files
// contain it.
func (a *Standalone) listen() (net.Listener, error) {
	file := filepath.Join(a.cfg.Dir, portFile)
	ports := []string{strconv.Itoa(a.cfg.Port)}
	if last, err := os.ReadFile(file); err == nil && a.cfg.Port == 0 {
		ports = []string{strings.TrimSpace(string(last)), "0"}
	}
	var listener net.Listener
	var err error
	for _, port := range ports {
		if listener, err = net.Listen("tcp", net.JoinHostPort(a.cfg.BindAddress, port)); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: choose another --port (0 takes a free one) or --bind-address", err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if err := fsutil.WriteFile(file, []byte(port+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// writeConfig writes the API server's files and its client certificate to one folder.
func (a *Standalone) writeConfig(status *StandaloneStatus) error {
	folder, err := filepath.Abs(a.cfg.WriteConfig)
	if err != nil {
		return err
	}
	client := Client{URL: status.URL, CAPEM: a.caPEM}
	if !status.Open {
		client.CertFile, client.KeyFile = filepath.Join(folder, clientCertFile), filepath.Join(folder, clientKeyFile)
	}
	if status.Args, err = client.WriteFiles(folder); err != nil {
		return err
	}
	if a.client.CertFile != "" {
		return a.copyClient()
	}
	for _, file := range []string{client.CertFile, client.KeyFile} {
		if _, err := os.Stat(file); file != "" && errors.Is(err, os.ErrNotExist) {
			status.MissingClient = append(status.MissingClient, file)
		}
	}
	return nil
}

func (a *Standalone) copyClient() error {
	for from, to := range map[string]string{a.client.CertFile: clientCertFile, a.client.KeyFile: clientKeyFile} {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := fsutil.WriteFile(filepath.Join(a.cfg.WriteConfig, to), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// renew renews the controller's own certificates until the context ends. Both sides reload them from the files.
func (a *Standalone) renew(ctx context.Context) error {
	if a.own == nil {
		return nil
	}
	return wait.PollUntilContextCancel(ctx, renewalPeriod, false, func(context.Context) (bool, error) {
		err := a.own.Renew()
		if err == nil && a.cfg.WriteConfig != "" && a.client.CertFile != "" {
			err = a.copyClient()
		}
		if err != nil {
			klog.Background().Error(err, "Could not renew certificates; trying again in an hour")
		}
		return false, nil
	})
}
