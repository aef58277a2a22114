package shootaccess

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// User and group of the gardenlet in a shoot.
const (
	User  = "gardener.cloud:gardenlet"
	Group = "system:masters"
)

// Names of the Secrets with a shoot's CAs, which have the keys ca.crt and ca.key. SecretOldCA is the previous CA during a
// rotation.
const (
	SecretCA       = "ca"
	SecretOldCA    = "ca.old"
	SecretClientCA = "ca-client"

	keyCert = "ca.crt"
	keyKey  = "ca.key"
)

const (
	// Life is how long a client certificate is valid.
	Life = time.Hour
	// backdate allows for clocks that differ.
	backdate = time.Minute
)

// ErrNoEndpoint says that the API server of the shoot has no address, because it is not created yet or is gone.
var ErrNoEndpoint = errors.New("it has no address yet")

// New returns a client configuration for the API server of the shoot with the namespace in the seed. Its certificate is
// valid for Life: a long-running caller must renew it in time, or use a Cache.
func New(ctx context.Context, seed client.Reader, namespace string) (*rest.Config, error) {
	return NewFor(ctx, seed, namespace, User, []string{Group}, Life, clock.RealClock{})
}

// NewFor is like New, for another user, lifetime and clock.
func NewFor(ctx context.Context, seed client.Reader, namespace, user string, groups []string, life time.Duration,
	clk clock.PassiveClock) (*rest.Config, error) {
	host, err := endpoint(ctx, seed, namespace)
	if err != nil {
		return nil, err
	}
	ca, old, signer := &corev1.Secret{}, &corev1.Secret{}, &corev1.Secret{}
	for name, secret := range map[string]*corev1.Secret{SecretCA: ca, SecretOldCA: old, SecretClientCA: signer} {
		err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		if name == SecretOldCA {
			err = client.IgnoreNotFound(err)
		}
		if err != nil {
			return nil, fmt.Errorf("reading Secret %s/%s, an authority of the shoot: %w", namespace, name, err)
		}
	}
	trusted := slices.Concat(ca.Data[keyCert], old.Data[keyCert])
	cert, key, err := Issue(signer, user, groups, life, clk)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: "https://" + host, TLSClientConfig: rest.TLSClientConfig{CAData: trusted, CertData: cert, KeyData: key}}, nil
}

func endpoint(ctx context.Context, seed client.Reader, namespace string) (string, error) {
	service := &corev1.Service{}
	if err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: spec.ServiceName}, service); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reaching the API server of the shoot %s: %w", namespace, ErrNoEndpoint)
	} else if err != nil {
		return "", fmt.Errorf("reading Service %s/%s for the address of the shoot's API server: %w", namespace, spec.ServiceName, err)
	}
	if host := spec.Endpoint(service); host != "" {
		return host, nil
	}
	return "", fmt.Errorf("reaching the API server of the shoot %s: %w", namespace, ErrNoEndpoint)
}

// Issue creates a client certificate that is signed by the CA in a Secret (ca.crt, ca.key). It does not outlive the CA.
func Issue(authority *corev1.Secret, user string, groups []string, life time.Duration, clk clock.PassiveClock) (
	certPEM, keyPEM []byte, err error) {
	name := authority.Namespace + "/" + authority.Name
	certs, err := certutil.ParseCertsPEM(authority.Data[keyCert])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate in Secret %s (%s): %w", name, keyCert, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(authority.Data[keyKey])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key in Secret %s (%s): %w", name, keyKey, err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("the key in Secret %s (%s) cannot sign", name, keyKey)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key for %s: %w", user, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("making a serial number: %w", err)
	}
	now, ca := clk.Now(), certs[0]
	notAfter := now.Add(life)
	if notAfter.After(ca.NotAfter) {
		notAfter = ca.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user, Organization: groups},
		NotBefore: now.Add(-backdate), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client certificate for %s with Secret %s: %w", user, name, err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, fmt.Errorf("writing the key of %s: %w", user, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, nil
}
