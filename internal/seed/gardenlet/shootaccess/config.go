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

// Who the gardenlet is to a shoot.
const (
	User  = "gardener.cloud:gardenlet"
	Group = "system:masters"
)

// Names of the Secrets of a shoot's authorities, with the keys ca.crt and ca.key. While an authority is rotated, there is
// the one before as well.
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
	// backdate is for clocks that are not quite the same.
	backdate = time.Minute
)

// ErrNoEndpoint says that the shoot has no API server yet, or none any more.
var ErrNoEndpoint = errors.New("it has no address yet")

// New is a client configuration for the API server of the shoot with this namespace in the seed. Its certificate lives for
// Life: a caller that stays makes a new one in time, or has a Cache.
func New(ctx context.Context, seed client.Reader, namespace string) (*rest.Config, error) {
	return NewFor(ctx, seed, namespace, User, []string{Group}, Life, clock.RealClock{})
}

// NewFor is New for another user, life and clock.
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

// Issue makes a client certificate with the authority in a Secret (ca.crt, ca.key). It does not outlive the authority.
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
