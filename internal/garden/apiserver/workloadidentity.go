package apiserver

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/garden/registry/security"
)

const (
	// issuerPath is the path of the issuer of WorkloadIdentity tokens on the garden's API server, the same as in
	// Gardener's discovery server.
	issuerPath = "/garden/workload-identity/issuer"
	// issuerKeyFile is the file with the issuer's key, in the same directory as the key for service account tokens.
	issuerKeyFile         = "workload-identity.key"
	serviceAccountKeyFile = "service-account.key"
)

// addressOf returns the address at which clients reach an API server. The configuration may not be completed yet.
func addressOf(c *genericapiserver.Config) (string, error) {
	if _, _, err := net.SplitHostPort(c.ExternalAddress); err == nil {
		return c.ExternalAddress, nil
	}
	if c.SecureServing == nil {
		return "", errors.New("finding the address of the API server: it does not listen")
	}
	host, port, err := c.SecureServing.HostPort()
	if err != nil {
		return "", fmt.Errorf("finding the address of the API server: %w", err)
	}
	return net.JoinHostPort(cmp.Or(c.ExternalAddress, host), strconv.Itoa(port)), nil
}

// newIssuer returns the issuer of WorkloadIdentity tokens of the garden whose API server has this address.
func newIssuer(pkiDir, address string, clock clock.PassiveClock) (*security.Issuer, error) {
	key, err := issuerKey(pkiDir)
	if err != nil {
		return nil, err
	}
	return &security.Issuer{URL: "https://" + address + issuerPath, Key: key, Clock: clock}, nil
}

// issuerKey reads the issuer's key, or creates it if the file does not exist.
func issuerKey(dir string) (*ecdsa.PrivateKey, error) {
	file := filepath.Join(dir, issuerKeyFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeIssuerKey(dir, file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a key: delete it, and one is made again", file)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%s is not a key on the curve P-256: delete it, and one is made again", file)
	}
	return key, nil
}

// makeIssuerKey derives the issuer's key from the key for service account tokens, and writes it to file. All
// processes of a garden share the key for service account tokens, so they derive the same issuer's key. The issuer's
// key reveals nothing about the key for service account tokens.
func makeIssuerKey(dir, file string) (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(filepath.Join(dir, serviceAccountKeyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the key for service account tokens: %w", err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a key", filepath.Join(dir, serviceAccountKeyFile))
	}
	secret, err := x509.MarshalPKCS8PrivateKey(parsed)
	if err != nil {
		return nil, fmt.Errorf("encoding the key for service account tokens: %w", err)
	}
	for attempt := range 100 { // one of 2^32 derived numbers is too large for the curve
		scalar, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("gardenlite workload identity %d", attempt), 32)
		if err != nil {
			return nil, fmt.Errorf("deriving a key: %w", err)
		}
		key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar)
		if err != nil {
			continue
		}
		keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			return nil, fmt.Errorf("encoding a key: %w", err)
		}
		return key, fsutil.WriteFile(file, keyPEM, 0o600)
	}
	return nil, errors.New("deriving a key: no number fits the curve")
}

// serveDiscovery serves the documents with which other parties verify the tokens.
func serveDiscovery(mux *mux.PathRecorderMux, issuer *security.Issuer) error {
	documents, err := issuer.Documents()
	if err != nil {
		return err
	}
	for path, document := range documents {
		mux.HandleFunc(issuerPath+path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				w.Header().Set("Allow", "GET, HEAD")
				http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "public, max-age=3600")
			_, _ = w.Write(document)
		})
	}
	return nil
}
