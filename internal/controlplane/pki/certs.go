package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/keyutil"

	"github.com/gardenlite/gardenlite/internal/certificates"
	"github.com/gardenlite/gardenlite/internal/fsutil"
)

// signAuthority returns the self-signed certificate of an authority.
func signAuthority(commonName string, key crypto.Signer, now time.Time) (*x509.Certificate, []byte, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-certificates.Backdate),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the certificate authority %s: %w", commonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// sign returns a certificate for a server or a client. It never outlives the authority.
func (a *authority) sign(req request, public crypto.PublicKey, now time.Time, life time.Duration) ([]byte, error) {
	notAfter := now.Add(life)
	if notAfter.After(a.cert.NotAfter) {
		notAfter = a.cert.NotAfter
	}
	ips, names := req.ips()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: req.commonName, Organization: req.organizations},
		NotBefore:             now.Add(-certificates.Backdate),
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           req.usages,
		BasicConstraintsValid: true,
		IPAddresses:           ips,
		DNSNames:              names,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", req.commonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// matches reports whether a certificate was created for the same request.
func (r request) matches(cert *x509.Certificate) bool {
	ips, names := r.ips()
	if cert.Subject.CommonName != r.commonName || len(ips) != len(cert.IPAddresses) || !equalSets(names, cert.DNSNames) ||
		!equalSets(r.organizations, cert.Subject.Organization) || !slices.Equal(r.usages, cert.ExtKeyUsage) {
		return false
	}
	for i, ip := range ips {
		if !ip.Equal(cert.IPAddresses[i]) {
			return false
		}
	}
	return true
}

// equalSets compares without regard to order: DER sorts a subject's organizations.
func equalSets(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func samePublicKey(cert *x509.Certificate, key crypto.Signer) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}

func generateKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	return key, keyPEM, err
}

// newKey creates a key and writes it to a file.
func newKey(file string) (crypto.Signer, error) {
	key, keyPEM, err := generateKey()
	if err != nil {
		return nil, err
	}
	return key, writeFile(file, keyPEM)
}

func readKey(file string) (crypto.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a %T cannot sign", file, key)
	}
	return signer, nil
}

func readCert(file string) (*x509.Certificate, []byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, nil, errors.New(file + ": no certificate in it")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return cert, data, nil
}

func writeFile(file string, data []byte) error {
	return fsutil.WriteFile(file, data, 0o600)
}
