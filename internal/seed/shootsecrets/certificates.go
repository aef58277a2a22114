package shootsecrets

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"golang.org/x/crypto/ssh"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/certificates"
)

const (
	// authorityLife is how long the certificate of a CA is valid, as in Gardener.
	authorityLife = 10 * 365 * 24 * time.Hour
	// sshBits is the length of the RSA keys for machines. Generating one takes 0.2 s, a third of the time for 4096 bits.
	sshBits = 3072
	// authorityBits is the length of the RSA keys of CAs: Gardener's gardenlet, which may go on with them, reads no other kind of keys.
	// Generating one takes 50 ms, a fifth of the time for Gardener's 3072 bits.
	authorityBits = 2048
)

// Keys of the Secrets' data.
const (
	// KeyCertificate and KeyPrivateKey are the certificate and key of a CA.
	KeyCertificate = "ca.crt"
	KeyPrivateKey  = "ca.key"
	// KeyRSA is a private key, either alone or in a key pair for SSH with the public key KeySSHPublic.
	KeyRSA       = "id_rsa"
	KeySSHPublic = "id_rsa.pub"
)

// Authority is the certificate and key of a CA in PEM.
type Authority struct{ Certificate, Key []byte }

func newAuthority(commonName string, now time.Time) (map[string][]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, authorityBits)
	if err != nil {
		return nil, fmt.Errorf("making the key of a CA: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	certificate, err := sign(&x509.Certificate{
		Subject:   pkix.Name{CommonName: commonName},
		NotBefore: now.Add(-certificates.Backdate), NotAfter: now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true,
	}, nil, key.Public(), key)
	return map[string][]byte{KeyCertificate: certificate, KeyPrivateKey: keyPEM}, err
}

// Client returns a client certificate for a user and its groups, with its key, in PEM. It does not outlive the CA.
func (a Authority) Client(user string, groups []string, now time.Time, life time.Duration) (certificate, key []byte, err error) {
	ca, signer, err := a.parse()
	if err != nil {
		return nil, nil, err
	}
	end := now.Add(life)
	if end.After(ca.NotAfter) {
		end = ca.NotAfter
	}
	return issue(&x509.Certificate{
		Subject:   pkix.Name{CommonName: user, Organization: groups},
		NotBefore: now.Add(-certificates.Backdate), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}, ca, signer)
}

// issue completes a certificate for a new key, and signs it with a CA.
func issue(template, ca *x509.Certificate, signer crypto.Signer) (certificate, keyPEM []byte, err error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	certificate, err = sign(template, ca, key.Public(), signer)
	return certificate, keyPEM, err
}

// sign completes a certificate for a key, and signs it with a CA, or with itself if there is none.
func sign(template, ca *x509.Certificate, key crypto.PublicKey, signer crypto.Signer) (certificate []byte, err error) {
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, cmp.Or(ca, template), key, signer)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", template.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Signed reports whether a certificate is signed by this CA, and valid for at least the given time.
func (a Authority) Signed(certificate []byte, clk clock.PassiveClock, left time.Duration) bool {
	ca, err := parseCertificate(a.Certificate)
	if err != nil {
		return false
	}
	leaf, err := parseCertificate(certificate)
	return err == nil && leaf.CheckSignatureFrom(ca) == nil && certificates.ValidFor(leaf, clk, left)
}

func (a Authority) parse() (*x509.Certificate, crypto.Signer, error) {
	cert, err := parseCertificate(a.Certificate)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate of an authority: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(a.Key)
	if err != nil {
		return nil, nil, errors.New("the key of the authority " + cert.Subject.CommonName + " cannot be read")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("the key of the authority %s cannot sign: it is a %T", cert.Subject.CommonName, key)
	}
	return cert, signer, nil
}

func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	return key, keyPEM, err
}

// newSigningKey returns a key to sign the tokens of service accounts.
func newSigningKey() (map[string][]byte, error) {
	_, keyPEM, err := newKey()
	return map[string][]byte{KeyRSA: keyPEM}, err
}

func newSSHKeypair(bits int) (map[string][]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("making a key pair for SSH: %w", err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("making a key pair for SSH: %w", err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return map[string][]byte{KeyRSA: private, KeySSHPublic: ssh.MarshalAuthorizedKey(public)}, nil
}
