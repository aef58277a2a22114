package landscape

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardenlite/gardenlite/internal/authz/admissioncontroller"
	"github.com/gardenlite/gardenlite/internal/controlplane/pki"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	// portFile is where an admission controller that runs alone keeps its port, for the next start.
	portFile = "port"
	// The client certificate in a folder of webhook files.
	webhookCertFile = "client.crt"
	webhookKeyFile  = "client.key"
	// gardenTimeout is how long the garden may take for its first answer.
	gardenTimeout = 15 * time.Second
	renewalPeriod = time.Hour
)

// AdmissionConfig is what an admission controller that runs alone is started with.
type AdmissionConfig struct {
	// Kubeconfig is for the garden.
	Kubeconfig string
	// Dir is its state folder: certificates that it makes itself, the log.
	Dir string
	// BindAddress and Port are where it listens. Port 0 takes a free one, and the same one again at the next start.
	BindAddress string
	Port        int
	// AdvertiseAddress is the name or IP address under which the garden's API server reaches it; BindAddress if empty.
	AdvertiseAddress string
	// CertFile, KeyFile and CAFile are its serving certificate, and what signed it; ClientCAFile the authorities of its
	// clients. Without them it makes its own.
	CertFile, KeyFile, CAFile, ClientCAFile string
	// Debug serves the page with the graph.
	Debug bool
	// WriteConfig, if set, is the folder to write the API server's files to.
	WriteConfig string
	// Install writes the ValidatingWebhookConfiguration into the garden.
	Install bool
	// LogFormat and Verbose are as for a landscape.
	LogFormat string
	Verbose   bool
	// OnReady is told of when it serves, OnWait of what it waits for.
	OnReady func(AdmissionStatus)
	OnWait  func(string)
}

// AdmissionStatus says where an admission controller that runs alone is.
type AdmissionStatus struct {
	Garden string // the address of the garden's API server
	URL    string // where the webhooks are
	Dir    string
	// Args are the flags for the garden's API server, if files were written; MissingClient is the client certificate that
	// has to be put beside the files.
	Args          []string
	MissingClient []string
	Installed     bool
	Page          string // of the graph, with Debug
	// Open says that whoever reaches it may ask: there is no authority for clients.
	Open            bool
	Vertices, Edges int
}

// DefaultAdmissionDir is the state folder of the admission controller that runs alone under that name.
func DefaultAdmissionDir(name string) (string, error) {
	return DefaultDir("admission-controller-" + name)
}

func (c *AdmissionConfig) complete() error {
	if c.AdvertiseAddress == "" {
		c.AdvertiseAddress = c.BindAddress
	}
	ip := net.ParseIP(c.BindAddress)
	var errs []error
	if c.Kubeconfig == "" {
		errs = append(errs, errors.New("--kubeconfig: say which garden"))
	}
	if ip == nil {
		errs = append(errs, fmt.Errorf("--bind-address %q: not an IP address", c.BindAddress))
	} else if ip.IsUnspecified() && c.AdvertiseAddress == c.BindAddress {
		errs = append(errs, fmt.Errorf("--bind-address %s is every address of this machine: say with --advertise-address under which one the garden reaches it", c.BindAddress))
	}
	if c.Port < 0 || c.Port > 65535 {
		errs = append(errs, fmt.Errorf("--port %d: a port is between 1 and 65535, or 0 for a free one", c.Port))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file go together"))
	}
	if c.CAFile != "" && c.CertFile == "" {
		errs = append(errs, errors.New("--tls-ca-file says what signed --tls-cert-file, so it needs that"))
	}
	if c.CertFile != "" && c.ClientCAFile == "" && ip != nil && !ip.IsLoopback() {
		errs = append(errs, errors.New("--client-ca-file is missing: without it everybody who reaches the port may ask what gardenlets may do; that is allowed on loopback only"))
	}
	if len(errs) > 0 {
		return &UsageError{errors.Join(errs...)}
	}
	if c.OnWait == nil {
		c.OnWait = func(string) {}
	}
	return nil
}

// RunAdmissionController runs an admission controller alone, against a garden elsewhere, until the context ends.
func RunAdmissionController(ctx context.Context, cfg AdmissionConfig) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	garden, err := connectGarden(ctx, cfg.Kubeconfig)
	if err != nil {
		return err
	}
	if err := prepareAdmissionDir(cfg.Dir); err != nil {
		return err
	}
	held, err := lock(cfg.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w: choose another --name or --data-dir", cfg.Dir, err)
	}
	defer held.Unlock() //nolint:errcheck // it goes with the process
	logs, err := startLogging(&Config{Dir: cfg.Dir, LogFormat: cfg.LogFormat, Verbose: cfg.Verbose})
	if err != nil {
		return err
	}
	defer logs.Close() //nolint:errcheck // nothing is written any more
	certificates, err := cfg.certificates()
	if err != nil {
		return err
	}
	listener, err := cfg.listen()
	if err != nil {
		return err
	}
	status, err := cfg.announce(listener, certificates)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	c, err := admissioncontroller.New(admissioncontroller.Config{
		REST: garden, Listener: listener, CertFile: certificates.cert, KeyFile: certificates.key, CAPEM: certificates.caPEM,
		ClientCAs: certificates.clients, ClientNames: certificates.names(), Debug: cfg.Debug, DebugToken: rand.Text(), Log: klog.Background().WithName(admissionController),
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	status.Garden, status.Page = garden.Host, c.GraphURL()
	if cfg.Install {
		// Before anybody is let through by the first webhook, the second one looks at what he does.
		if err := admissioncontroller.Install(ctx, garden, status.URL, certificates.caPEM); err != nil {
			return errors.Join(err, listener.Close())
		}
		status.Installed = true
	}
	return cfg.serve(ctx, c, certificates, status)
}

// serve runs the controller, and tells of it when it is ready.
func (c *AdmissionConfig) serve(parent context.Context, controller *admissioncontroller.Controller, certificates *admissionCertificates, status AdmissionStatus) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- controller.Run(ctx)
	}()
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		c.renew(ctx, certificates)
	}()
	err := c.untilSynced(ctx, controller)
	if err == nil {
		status.Vertices, status.Edges = controller.Graph().Len()
		c.OnReady(status)
		<-ctx.Done()
	}
	cancel()
	<-renewed
	runErr := <-ended
	switch {
	case parent.Err() != nil:
		return nil // asked for
	case runErr != nil:
		return runErr // and what came after is because of it
	}
	return err
}

// untilSynced waits for the graph, and says from time to time for what.
func (c *AdmissionConfig) untilSynced(ctx context.Context, controller *admissioncontroller.Controller) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	tell := time.Now().Add(3 * time.Second)
	for !controller.HasSynced() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if time.Now().After(tell) {
				c.OnWait(controller.Missing())
				tell = time.Now().Add(30 * time.Second)
			}
		}
	}
	return nil
}

// connectGarden makes sure that there is a garden.
func connectGarden(ctx context.Context, kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("--kubeconfig: %w", err)}
	}
	config.UserAgent = "gardenlite/" + admissionController
	probe := rest.CopyConfig(config)
	probe.Timeout = gardenTimeout
	client, err := discovery.NewDiscoveryClientForConfig(probe)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	if err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("the garden at %s does not answer: start it, or correct --kubeconfig: %w", config.Host, err)
	}
	if err := client.RESTClient().Get().AbsPath("/apis/" + v1beta1.SchemeGroupVersion.String()).Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("%s is no garden, it does not serve %s: correct --kubeconfig: %w", config.Host, v1beta1.SchemeGroupVersion, err)
	}
	return config, nil
}

// prepareAdmissionDir makes the state folder, and keeps away from a landscape's.
func prepareAdmissionDir(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, runFile)); err == nil {
		return &UsageError{fmt.Errorf("--data-dir %s is a landscape's, which has an admission controller of its own: choose another", dir)}
	}
	return prepareDir(dir)
}

// admissionCertificates are those of an admission controller that runs alone.
type admissionCertificates struct {
	cert, key string
	caPEM     []byte // what signed the serving certificate
	clients   *x509.CertPool
	own       *pki.PKI   // nil where all are given
	client    pki.Client // for the API server, if own signs for clients
}

// names are the clients that may ask: of its own authority the API server's, of another all.
func (c *admissionCertificates) names() []string {
	if c.client.User == "" {
		return nil
	}
	return []string{c.client.User}
}

func (c *AdmissionConfig) certificates() (*admissionCertificates, error) {
	certificates := &admissionCertificates{cert: c.CertFile, key: c.KeyFile}
	if c.CertFile == "" {
		own, err := pki.Load(pki.Config{Dir: filepath.Join(c.Dir, pkiFolder), Name: admissionController, Hosts: c.hosts(), Clock: clock.RealClock{}})
		if err != nil {
			return nil, err
		}
		certificates.own, certificates.caPEM = own, own.CAPEM()
		certificates.cert, certificates.key = own.ServingCertFile(), own.ServingKeyFile()
	} else if err := certificates.given(c.CAFile); err != nil {
		return nil, &UsageError{err}
	}
	authorities := certificates.caPEM
	switch {
	case c.ClientCAFile != "":
		data, err := os.ReadFile(c.ClientCAFile)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("--client-ca-file: %w", err)}
		}
		authorities = data
	case certificates.own == nil:
		return certificates, nil
	default:
		client, err := certificates.own.Client("apiserver-webhooks", webhookClient)
		if err != nil {
			return nil, err
		}
		certificates.client = client
	}
	certificates.clients = x509.NewCertPool()
	if !certificates.clients.AppendCertsFromPEM(authorities) {
		return nil, &UsageError{fmt.Errorf("--client-ca-file %s has no certificate", c.ClientCAFile)}
	}
	return certificates, nil
}

// given reads the certificate that the user gave. Without an authority, clients trust the certificate itself.
func (c *admissionCertificates) given(caFile string) error {
	if _, err := tls.LoadX509KeyPair(c.cert, c.key); err != nil {
		return fmt.Errorf("--tls-cert-file and --tls-private-key-file: %w", err)
	}
	if caFile == "" {
		caFile = c.cert
	}
	data, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("--tls-ca-file: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return fmt.Errorf("--tls-ca-file %s has no certificate", caFile)
	}
	c.caPEM = data
	return nil
}

func (c *AdmissionConfig) hosts() []string {
	hosts := []string{"127.0.0.1", "::1", "localhost"}
	for _, host := range []string{c.BindAddress, c.AdvertiseAddress} {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() && !ip.IsUnspecified() {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// listen takes the port of the last time, if none is asked for: the API server's files name it.
func (c *AdmissionConfig) listen() (net.Listener, error) {
	file, port := filepath.Join(c.Dir, portFile), c.Port
	if data, err := os.ReadFile(file); err == nil && port == 0 {
		if last, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && last > 0 && last < 65536 {
			port = freePort(c.BindAddress, last)
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(c.BindAddress, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("%w: choose another --port (0 takes a free one) or --bind-address", err)
	}
	taken := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	if err := fsutil.WriteFile(file, []byte(taken+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// announce writes the API server's files and says where everything is.
func (c *AdmissionConfig) announce(listener net.Listener, certificates *admissionCertificates) (AdmissionStatus, error) {
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return AdmissionStatus{}, err
	}
	status := AdmissionStatus{URL: "https://" + net.JoinHostPort(c.AdvertiseAddress, port), Dir: c.Dir, Open: certificates.clients == nil}
	if c.WriteConfig == "" {
		return status, nil
	}
	folder, err := filepath.Abs(c.WriteConfig)
	if err != nil {
		return status, fmt.Errorf("--write-config: %w", err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return status, fmt.Errorf("--write-config: %w", err)
	}
	client := admissioncontroller.Client{URL: status.URL, CAPEM: certificates.caPEM}
	if !status.Open {
		client.CertFile, client.KeyFile = filepath.Join(folder, webhookCertFile), filepath.Join(folder, webhookKeyFile)
	}
	files, err := admissioncontroller.NewFiles(folder, client)
	if err != nil {
		return status, err
	}
	for name, data := range files {
		if err := fsutil.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return status, fmt.Errorf("--write-config: %w", err)
		}
	}
	status.Args = admissioncontroller.Args(folder)
	switch err := certificates.copyClient(folder); {
	case err != nil:
		return status, fmt.Errorf("--write-config: %w", err)
	case certificates.client.CertFile == "" && !status.Open:
		status.MissingClient = missing(client.CertFile, client.KeyFile)
	}
	return status, nil
}

func missing(files ...string) (names []string) {
	for _, file := range files {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			names = append(names, file)
		}
	}
	return names
}

// copyClient puts the API server's client certificate beside its files, so that the folder is all that it needs.
func (c *admissionCertificates) copyClient(folder string) error {
	if c.client.CertFile == "" {
		return nil
	}
	for from, to := range map[string]string{c.client.CertFile: webhookCertFile, c.client.KeyFile: webhookKeyFile} {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := fsutil.WriteFile(filepath.Join(folder, to), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// renew keeps the controller's own certificates valid. Both sides read them from the files.
func (c *AdmissionConfig) renew(ctx context.Context, certificates *admissionCertificates) {
	if certificates.own == nil {
		return
	}
	ticker := time.NewTicker(renewalPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err := certificates.own.Renew()
			if err == nil && c.WriteConfig != "" {
				err = certificates.copyClient(c.WriteConfig)
			}
			if err != nil {
				klog.Background().Error(err, "Could not renew certificates; trying again in an hour")
			}
		}
	}
}
