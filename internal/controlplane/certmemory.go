package controlplane

import (
	"crypto/sha256"
	"crypto/x509"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
)

const (
	// certMemoryTime is how long it is remembered whose a client's certificate is: as long as Kubernetes does so with tokens.
	certMemoryTime = 10 * time.Second
	// certMemorySize is how many certificates are remembered at most.
	certMemorySize = 1000
)

// credentialHeaders are the beginnings of the names of headers that say who asks, beside the certificate.
var credentialHeaders = []string{"Authorization", "X-Remote-", "Sec-Websocket-Protocol"}

// certMemory is an authenticator that remembers for a moment whose a client's certificate is: clients keep their
// connections, and to verify a certificate with each request costs as much as the rest of a cheap one. What it remembers
// ends with the certificate, by the landscape's clock, and with any change of the authorities.
type certMemory struct {
	next  authenticator.Request
	clock clock.PassiveClock
	// authorities returns their certificates: the same slice until they change.
	authorities func() []byte

	mu     sync.Mutex
	bundle []byte
	known  map[[sha256.Size]byte]rememberedCert
}

type rememberedCert struct {
	response *authenticator.Response
	until    time.Time // by the system's clock
}

func newCertMemory(next authenticator.Request, clock clock.PassiveClock, authorities func() []byte) *certMemory {
	return &certMemory{next: next, clock: clock, authorities: authorities, known: map[[sha256.Size]byte]rememberedCert{}}
}

// AuthenticateRequest implements authenticator.Request.
func (m *certMemory) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if !onlyByCert(r) {
		return m.next.AuthenticateRequest(r)
	}
	certs := r.TLS.PeerCertificates
	key, bundle := fingerprint(certs), m.authorities()
	if response := m.remembers(key, bundle, certs[0]); response != nil {
		return response, true, nil
	}
	response, ok, err := m.next.AuthenticateRequest(r)
	if ok && err == nil && isByCert(response.User) {
		m.remember(key, bundle, response)
	}
	return response, ok, err
}

func (m *certMemory) remembers(key [sha256.Size]byte, bundle []byte, cert *x509.Certificate) *authenticator.Response {
	if now := m.clock.Now(); now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.known[key]; ok && sameSlice(m.bundle, bundle) && time.Now().Before(known.until) {
		return known.response
	}
	return nil
}

// remember notes what was found out while these were the authorities.
func (m *certMemory) remember(key [sha256.Size]byte, bundle []byte, response *authenticator.Response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !sameSlice(m.bundle, bundle) || len(m.known) >= certMemorySize {
		clear(m.known)
		m.bundle = bundle
	}
	m.known[key] = rememberedCert{response, time.Now().Add(certMemoryTime)}
}

// onlyByCert says whether nothing but its certificate can say who asks.
func onlyByCert(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	for name := range r.Header {
		for _, prefix := range credentialHeaders {
			if strings.HasPrefix(name, prefix) {
				return false
			}
		}
	}
	return true
}

// isByCert says whether a user was recognized by a certificate.
func isByCert(who user.Info) bool {
	for _, id := range who.GetExtra()[user.CredentialIDKey] {
		if strings.HasPrefix(id, "X509") {
			return true
		}
	}
	return false
}

// fingerprint is that of a certificate and of those that it is verified with.
func fingerprint(certs []*x509.Certificate) (sum [sha256.Size]byte) {
	if len(certs) == 1 {
		return sha256.Sum256(certs[0].Raw)
	}
	all := sha256.New()
	for _, cert := range certs {
		each := sha256.Sum256(cert.Raw)
		all.Write(each[:])
	}
	all.Sum(sum[:0])
	return sum
}

// sameSlice says whether two slices are one.
func sameSlice(a, b []byte) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}
