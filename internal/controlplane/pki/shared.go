package pki

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/keyutil"
)

// Shared are the files by which several processes are one cluster to its clients: the authorities and the key for service
// account tokens, by name. What they sign, each process has its own of.
type Shared map[string][]byte

// sharedFiles are the names, each key before its certificate.
var sharedFiles = []string{"ca.key", "ca.crt", "front-proxy-ca.key", "front-proxy-ca.crt", "service-account.key"}

// Export returns what a PKI shares, and makes what is missing.
func Export(cfg Config) (Shared, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder for certificates: %w", err)
	}
	p := &PKI{cfg: cfg}
	if err := p.loadAuthorities(); err != nil {
		return nil, err
	}
	shared := Shared{}
	for _, name := range sharedFiles {
		data, err := os.ReadFile(p.file(name))
		if err != nil {
			return nil, fmt.Errorf("reading what the cluster's processes share: %w", err)
		}
		shared[name] = data
	}
	return shared, nil
}

// Import writes what others share into a PKI's folder. Load makes everything else anew that does not fit. A certificate
// that is there for the same key stays: it may have been renewed.
func Import(dir string, shared Shared) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder for certificates: %w", err)
	}
	changed := false
	for _, name := range sharedFiles {
		data := shared[name]
		isKey := filepath.Ext(name) == ".key"
		if len(data) == 0 {
			return fmt.Errorf("what the cluster's processes share has no %s", name)
		}
		if _, err := keyutil.ParsePrivateKeyPEM(data); isKey && err != nil {
			return fmt.Errorf("what the cluster's processes share: %s: %w", name, err)
		}
		current, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("reading a file of the cluster's authorities: %w", err)
		}
		same := err == nil && bytes.Equal(current, data)
		if isKey {
			changed = !same
		}
		if same || !isKey && !changed && err == nil {
			continue
		}
		if err := writeFile(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	return nil
}
