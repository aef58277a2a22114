package kubeconfig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// backdate lets clocks that are a little behind accept a new certificate.
const backdate = time.Minute

// rsaBits is the size of RSA keys.
const rsaBits = 3072

// Algorithm is that of the keys in kubeconfigs.
type Algorithm string

// The algorithms. An RSA key takes a hundred times as long to make.
const (
	ECDSA Algorithm = "ecdsa"
	RSA   Algorithm = "rsa"
)

// generate makes a key.
func (a Algorithm) generate() (newKey, error) {
	if a == RSA {
		key, err := rsa.GenerateKey(rand.Reader, rsaBits)
		if err != nil {
			return newKey{}, fmt.Errorf("making a key: %w", err)
		}
		keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			return newKey{}, fmt.Errorf("encoding a key: %w", err)
		}
		return newKey{key, keyPEM}, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return newKey{}, fmt.Errorf("making a key: %w", err)
	}
	form, err := p256()
	if err != nil {
		return newKey{}, err
	}
	der, err := form.marshalPrivate(key)
	if err != nil {
		return newKey{}, err
	}
	return newKey{key, pem.EncodeToMemory(&pem.Block{Type: keyutil.ECPrivateKeyBlockType, Bytes: der})}, nil
}

// authority signs client certificates of one Shoot.
type authority struct {
	cert    *x509.Certificate
	stencil func() (*stencil, error)
}

func newAuthority(cert *x509.Certificate, key crypto.Signer) *authority {
	return &authority{cert, sync.OnceValues(func() (*stencil, error) { return newStencil(cert, key) })}
}

// parseAuthority reads an authority. Of several certificates the one for the key counts.
func parseAuthority(certPEM, keyPEM []byte) (*authority, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, errors.New("its key cannot be read") // what is in it stays out of messages
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("its key is a %T, which cannot sign", parsed)
	}
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("its certificate cannot be read: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("its key cannot be used: %w", err)
	}
	for _, cert := range certs {
		if bytes.Equal(cert.RawSubjectPublicKeyInfo, public) {
			return newAuthority(cert, key), nil
		}
	}
	return nil, errors.New("its certificate and its key do not belong together")
}

// issue makes a client certificate for a user in a group.
func (a *authority) issue(user, group string, public crypto.PublicKey, now, notAfter time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	stencil, err := a.stencil()
	if err != nil {
		return nil, err
	}
	der, err := stencil.cut(serial, subject{user, group}, public, now.Add(-backdate).Truncate(time.Second), notAfter)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
