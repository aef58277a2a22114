package shootkubeconfig

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/gardenlite/gardenlite/internal/certificates"
)

// authority signs the client certificates of one Shoot.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// parseAuthority parses the certificate authority in a Secret. Of several certificates, it uses the one of the key.
func parseAuthority(certPEM, keyPEM []byte) (*authority, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, errors.New("its key cannot be read") // the cause could quote the key
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
			return &authority{cert, key}, nil
		}
	}
	return nil, errors.New("its certificate and its key do not belong together")
}

// issue signs a client certificate for a user in a group.
func (a *authority) issue(user, group string, public crypto.PublicKey, now, notAfter time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: user, Organization: []string{group}},
		NotBefore:             now.Add(-certificates.Backdate).Truncate(time.Second),
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a client certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der}), nil
}
