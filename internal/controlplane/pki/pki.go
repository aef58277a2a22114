// Package pki creates and stores the certificates and keys of one control plane: its certificate authority, the API
// server's serving certificate, client certificates, the front proxy's authority and client, and the key that signs
// service account tokens. Authorities and keys can also be given by the caller, see Authorities.
//
// Everything is created once, stored in files (folder 0700, files 0600) and renewed before it expires. An authority
// keeps its key when its certificate is renewed, so a client that trusts the old certificate trusts the certificates
// that the authority signs afterwards.
package pki

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/certificates"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// renewAt is the fraction of its lifetime after which a certificate is renewed.
	renewAt = 0.8
)

// Config is the configuration of a PKI.
type Config struct {
	// Dir is the folder of the files.
	Dir string
	// Name is the name of the cluster, part of the authorities' common names.
	Name string
	// Hosts are the names and IP addresses in the API server's serving certificate.
	Hosts []string
	// Given are the caller's authorities and keys. Without them, the PKI creates its own.
	Given *Authorities
	// Clock determines when a certificate has to be renewed.
	Clock clock.PassiveClock
}

// PKI is a loaded PKI.
type PKI struct {
	cfg Config

	mu sync.Mutex // held by Renew, while others issue certificates
	// ca signs the serving certificate, clientCA client certificates; they are the same unless they were given.
	ca, clientCA *authority
	frontProxy   *authority
	// bundle has the authorities that clients trust.
	bundle []byte
	// stored are the users that have a stored certificate.
	stored sets.Set[string]
}

// Load reads the PKI from its folder, and creates what is missing or has to be renewed.
func Load(cfg Config) (*PKI, error) {
	for _, dir := range []string{cfg.Dir, filepath.Join(cfg.Dir, clientsFolder)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("creating the folder for certificates: %w", err)
		}
	}
	p := &PKI{cfg: cfg, stored: sets.Set[string]{}}
	return p, p.Renew()
}

// Renew creates everything that is missing, damaged in a way that loses nothing, or due for renewal. Running servers
// and clients that read the files reload them by themselves.
func (p *PKI) Renew() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadAuthorities(); err != nil {
		return err
	}
	serving := request{commonName: "kube-apiserver", hosts: p.cfg.Hosts, usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if err := p.ensureLeaf(p.ca, filepath.Join(p.cfg.Dir, "apiserver"), serving); err != nil {
		return err
	}
	proxy := request{commonName: "front-proxy-client", usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if err := p.ensureLeaf(p.frontProxy, filepath.Join(p.cfg.Dir, "front-proxy-client"), proxy); err != nil {
		return err
	}
	return p.renewClients()
}

// loadAuthorities reads or creates the authorities and the key for service account tokens.
func (p *PKI) loadAuthorities() error {
	if p.cfg.Given != nil {
		return p.takeGiven()
	}
	var err error
	if p.ca, err = p.loadAuthority("ca", "gardenlite:"+p.cfg.Name+":ca"); err != nil {
		return err
	}
	p.clientCA, p.bundle = p.ca, p.ca.certPEM
	if p.frontProxy, err = p.loadAuthority("front-proxy-ca", "gardenlite:"+p.cfg.Name+":front-proxy-ca"); err != nil {
		return err
	}
	return p.ensureSigningKey(p.ServiceAccountKeyFile())
}

// ClientCAFile and the other methods return the paths for an API server's options and for controllers. ClientCAFile has
// the authorities whose client certificates are accepted. SigningCertFile and SigningKeyFile are the authority that signs
// client certificates. ServiceAccountKeyFile signs tokens, and ServiceAccountBundleFile has every key whose tokens are
// accepted.
func (p *PKI) ClientCAFile() string    { return p.ownOr("ca.crt", clientCABundleFile) }
func (p *PKI) SigningCertFile() string { return p.ownOr("ca.crt", "ca-client.crt") }
func (p *PKI) SigningKeyFile() string  { return p.ownOr("ca.key", "ca-client.key") }
func (p *PKI) ServiceAccountBundleFile() string {
	return p.ownOr("service-account.key", serviceAccountBundleFile)
}
func (p *PKI) ServingCertFile() string          { return p.file("apiserver.crt") }
func (p *PKI) ServingKeyFile() string           { return p.file("apiserver.key") }
func (p *PKI) ServiceAccountKeyFile() string    { return p.file("service-account.key") }
func (p *PKI) FrontProxyCAFile() string         { return p.file("front-proxy-ca.crt") }
func (p *PKI) FrontProxyClientCertFile() string { return p.file("front-proxy-client.crt") }
func (p *PKI) FrontProxyClientKeyFile() string  { return p.file("front-proxy-client.key") }

// FrontProxyClientName is the common name of the client from which the API server accepts user headers.
const FrontProxyClientName = "front-proxy-client"

// CAPEM returns the authorities that clients trust.
func (p *PKI) CAPEM() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bundle
}

func (p *PKI) file(name string) string { return filepath.Join(p.cfg.Dir, name) }

type authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer
}

// loadAuthority reads or creates an authority. If a key has no certificate, because the process was killed in between,
// the certificate is created. A certificate without its key, and files that cannot be read, are errors: a new authority
// would lock out every client that trusts the old one.
func (p *PKI) loadAuthority(name, commonName string) (*authority, error) {
	certFile, keyFile := p.file(name+".crt"), p.file(name+".key")
	key, err := readKey(keyFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, certErr := os.Stat(certFile); certErr == nil {
			return nil, fmt.Errorf("%s is there but its key %s is not: put the key back, or start anew with \"gardenlite reset\"", certFile, keyFile)
		}
		if key, err = newKey(keyFile); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("reading the key of a certificate authority: %w; put a copy back, or start anew with \"gardenlite reset\"", err)
	}
	cert, certPEM, err := readCert(certFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading a certificate authority: %w; put a copy back, or start anew with \"gardenlite reset\"", err)
	}
	now := landscapeclock.Real(p.cfg.Clock)
	if cert != nil && now.Before(cert.NotBefore) {
		return nil, fmt.Errorf("the clock has gone back: it says %s, and the certificates of this landscape are from %s: "+
			"set the clock right, or start anew with \"gardenlite reset\"",
			now.UTC().Format(time.RFC3339), cert.NotBefore.UTC().Format(time.RFC3339))
	}
	if cert == nil || !samePublicKey(cert, key) || needsRenewal(cert, p.cfg.Clock) {
		if cert, certPEM, err = signAuthority(commonName, key, now); err != nil {
			return nil, err
		}
		if err := writeFile(certFile, certPEM); err != nil {
			return nil, err
		}
	}
	return &authority{cert: cert, certPEM: certPEM, key: key}, nil
}

// ensureLeaf creates the certificate and key at path.crt and path.key unless there is a valid pair.
func (p *PKI) ensureLeaf(ca *authority, path string, req request) error {
	key, keyErr := readKey(path + ".key")
	cert, _, certErr := readCert(path + ".crt")
	if keyErr == nil && certErr == nil && samePublicKey(cert, key) && !needsRenewal(cert, p.cfg.Clock) &&
		cert.CheckSignatureFrom(ca.cert) == nil && req.matches(cert) {
		return nil
	}
	// The pair consists of two files. The key stays, so that a reader between the two writes gets a matching pair.
	if keyErr != nil {
		var err error
		if key, err = newKey(path + ".key"); err != nil {
			return err
		}
	}
	certPEM, err := ca.sign(req, key.Public(), landscapeclock.Real(p.cfg.Clock), leafLife)
	if err != nil {
		return err
	}
	return writeFile(path+".crt", certPEM)
}

func (p *PKI) ensureSigningKey(file string) error {
	_, err := readKey(file)
	if errors.Is(err, os.ErrNotExist) {
		_, err = newKey(file)
		return err
	}
	if err != nil {
		return fmt.Errorf("reading the key for service account tokens: %w; put a copy back, or start anew with \"gardenlite reset\"", err)
	}
	return nil
}

func needsRenewal(cert *x509.Certificate, clk clock.PassiveClock) bool {
	life := cert.NotAfter.Sub(cert.NotBefore)
	return !certificates.ValidFor(cert, clk, time.Duration(float64(life)*(1-renewAt)))
}

// request describes the certificate to be signed.
type request struct {
	commonName    string
	organizations []string
	hosts         []string
	usages        []x509.ExtKeyUsage
}

func (r request) ips() (ips []net.IP, names []string) {
	for _, host := range r.hosts {
		if ip := net.ParseIP(host); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, host)
		}
	}
	return ips, names
}
