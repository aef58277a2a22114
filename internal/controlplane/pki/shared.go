package pki

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/keyutil"
)

// Shared has the files, by name, that make several processes one cluster for clients: the authorities and the key for
// service account tokens. Each process has its own certificates, signed by these authorities.
type Shared map[string][]byte

// sharedFiles are the names of the files, each key before its certificate.
var sharedFiles = []string{"ca.key", "ca.crt", "front-proxy-ca.key", "front-proxy-ca.crt", "service-account.key"}

// Export returns the shared files of a PKI, and creates what is missing.
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

// Import writes shared files into the folder of a PKI. Afterwards, Load replaces certificates that do not fit. An
// existing certificate for the same key stays, because it may have been renewed.
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
