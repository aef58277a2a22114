package pki

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

const clientsFolder = "clients"

// Client is a client certificate that is stored and renewed.
type Client struct {
	CertFile string `json:"-"`
	KeyFile  string `json:"-"`
	// User and Groups are the identity of the client at the API server.
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// Client ensures that there is a client certificate with that name for the user, and returns the files. Clients that
// read the certificate from the files see renewals.
func (p *PKI) Client(name, user string, groups ...string) (Client, error) {
	if name == "" || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return Client{}, fmt.Errorf("%q is no name for a client certificate", name)
	}
	path := filepath.Join(p.cfg.Dir, clientsFolder, name)
	client := Client{CertFile: path + ".crt", KeyFile: path + ".key", User: user, Groups: groups}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ensureLeaf(p.clientCA, path, client.request()); err != nil {
		return Client{}, err
	}
	p.stored.Insert(user)
	about, err := json.Marshal(client)
	if err != nil {
		return Client{}, err
	}
	return client, writeFile(path+".json", about)
}

// Renews reports whether certificates of a user are stored and renewed here.
func (p *PKI) Renews(user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stored.Has(user)
}

// Issue returns a new client certificate and its key. They are not stored.
func (p *PKI) Issue(user string, groups []string, life time.Duration) (certPEM, keyPEM []byte, err error) {
	key, keyPEM, err := generateKey()
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	clientCA := p.clientCA
	p.mu.Unlock()
	certPEM, err = clientCA.sign(Client{User: user, Groups: groups}.request(), key.Public(), landscapeclock.Real(p.cfg.Clock), life)
	return certPEM, keyPEM, err
}

func (c Client) request() request {
	return request{commonName: c.User, organizations: c.Groups, usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

func (p *PKI) renewClients() error {
	dir := filepath.Join(p.cfg.Dir, clientsFolder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the client certificates: %w", err)
	}
	for _, entry := range entries {
		name, isAbout := strings.CutSuffix(entry.Name(), ".json")
		if !isAbout || strings.HasPrefix(name, ".") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("reading the client certificates: %w", err)
		}
		var client Client
		if err := json.Unmarshal(data, &client); err != nil {
			return fmt.Errorf("reading %s: %w", entry.Name(), err)
		}
		if err := p.ensureLeaf(p.clientCA, filepath.Join(dir, name), client.request()); err != nil {
			return err
		}
	}
	return nil
}

// IssueFrom returns a new client certificate and its key, like PKI.Issue, of the authority in the folder of a PKI that
// another process manages. It creates and renews nothing.
func IssueFrom(dir string, clock clock.PassiveClock, user string, groups []string, life time.Duration) (certPEM, keyPEM []byte, err error) {
	cert, _, err := readCert(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	key, err := readKey(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate authority's key: %w", err)
	}
	p := &PKI{cfg: Config{Clock: clock}, clientCA: &authority{cert: cert, key: key}}
	return p.Issue(user, groups, life)
}
