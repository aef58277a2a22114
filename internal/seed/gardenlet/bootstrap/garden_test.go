package bootstrap

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	testclock "k8s.io/utils/clock/testing"
)

const (
	// ownToken has the ID that bootstraprules.TokenID returns for garden/a.
	ownToken     = "4c40cb.0123456789abcdef"
	anotherToken = "abcdef.fedcba9876543210"
	life         = 100 * time.Hour
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// garden is a fake garden that serves what a gardenlet needs for its certificate, over TLS with real certificates.
type garden struct {
	*httptest.Server
	clock *testclock.FakeClock
	key   *ecdsa.PrivateKey

	mu       sync.Mutex
	users    map[string]string // by token
	requests map[string]*certificatesv1.CertificateSigningRequest
	deleted  []string // user and path of each deletion
	calls    []string
	serial   int64
	conns    map[net.Conn]http.ConnState

	events chan struct{}                                   // of the watch
	decide func(*certificatesv1.CertificateSigningRequest) // by default it is approved
	before func(r *http.Request) int                       // a result other than 0 is the status of the response
	after  func(r *http.Request)
}

func newGarden(t *testing.T, changes ...func(*garden)) *garden {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	g := &garden{
		clock: testclock.NewFakeClock(start), key: key, requests: map[string]*certificatesv1.CertificateSigningRequest{},
		conns:  map[net.Conn]http.ConnState{},
		events: make(chan struct{}), users: map[string]string{ownToken: "system:bootstrap:4c40cb", anotherToken: "system:bootstrap:abcdef"},
	}
	g.Server = httptest.NewUnstartedServer(g)
	g.EnableHTTP2 = true
	g.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	g.Config.ConnState = func(c net.Conn, state http.ConnState) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.conns[c] = state; state == http.StateClosed || state == http.StateHijacked {
			delete(g.conns, c)
		}
	}
	g.Config.ErrorLog = log.New(io.Discard, "", 0) // aborted handshakes
	for _, change := range changes {
		change(g)
	}
	g.StartTLS()
	t.Cleanup(g.Close)
	return g
}

func (g *garden) user(r *http.Request) string {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return g.users[token]
	}
	for _, cert := range r.TLS.PeerCertificates {
		if now := g.clock.Now(); now.Before(cert.NotAfter) && !now.Before(cert.NotBefore) {
			return cert.Subject.CommonName
		}
	}
	return ""
}

func (g *garden) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	user, before, after := g.user(r), g.before, g.after
	if r.URL.Path != "/load" {
		g.calls = append(g.calls, r.Method+" "+r.URL.Path)
	}
	g.mu.Unlock()
	status := 0
	if before != nil {
		status = before(r)
	}
	if user == "" {
		status = http.StatusUnauthorized
	}
	if status != 0 {
		answer(w, status, &metav1.Status{Status: "Failure", Code: int32(status), Reason: reasons[status], Message: http.StatusText(status)})
		return
	}
	if r.URL.Path == "/watch" {
		g.watched(w, r)
		return
	}
	g.mu.Lock()
	code, body := g.serve(r, user)
	g.mu.Unlock()
	if after != nil {
		after(r)
	}
	answer(w, code, body)
}

var reasons = map[int]metav1.StatusReason{401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden,
	404: metav1.StatusReasonNotFound,
	409: metav1.StatusReasonAlreadyExists, 422: metav1.StatusReasonInvalid, 503: metav1.StatusReasonServiceUnavailable}

// watched responds with one byte per event.
func (g *garden) watched(w http.ResponseWriter, r *http.Request) {
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-g.events:
			w.Write([]byte("x"))
		}
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body)
}

func (g *garden) serve(r *http.Request, user string) (int, any) {
	const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	failure := func(code int) (int, any) {
		return code, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Code: int32(code), Reason: reasons[code]}
	}
	name, one := strings.CutPrefix(r.URL.Path, requests+"/")
	switch {
	case r.URL.Path == "/load":
		return http.StatusOK, r.TLS.PeerCertificates[0].SerialNumber.Int64()
	case r.Method == http.MethodDelete:
		g.deleted = append(g.deleted, user+" "+r.URL.Path)
		return failure(http.StatusNotFound)
	case r.Method == http.MethodPost && r.URL.Path == requests:
		csr := &certificatesv1.CertificateSigningRequest{}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, _, err = clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, csr)
		}
		if err != nil {
			panic(err)
		}
		if g.requests[csr.Name] != nil {
			return failure(http.StatusConflict)
		}
		csr.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
		csr.Spec.Username = user
		g.requests[csr.Name] = csr
		if g.decide != nil {
			g.decide(csr)
		} else {
			g.sign(csr, g.clock.Now())
		}
		return http.StatusCreated, csr
	case r.Method == http.MethodGet && one:
		if csr := g.requests[name]; csr != nil {
			return http.StatusOK, csr
		}
	}
	return failure(http.StatusNotFound)
}

func (g *garden) sign(csr *certificatesv1.CertificateSigningRequest, from time.Time) {
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		panic(err)
	}
	csr.Status.Certificate = g.certificate(request.Subject, request.PublicKey, from)
}

func (g *garden) certificate(subject pkix.Name, public any, from time.Time) []byte {
	g.serial++
	template := &x509.Certificate{SerialNumber: big.NewInt(g.serial), Subject: subject, NotBefore: from, NotAfter: from.Add(life)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, g.key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// kubeconfig returns a kubeconfig for a user, with a certificate that is valid from the given time.
func (g *garden) kubeconfig(t *testing.T, user string, from time.Time) []byte {
	t.Helper()
	keyPEM, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	certPEM := g.certificate(pkix.Name{CommonName: user, Organization: []string{"gardener.cloud:system:seeds"}},
		key.(*ecdsa.PrivateKey).Public(), from)
	return g.kubeconfigOf(t, &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM})
}

func (g *garden) withToken(t *testing.T, token string) []byte {
	return g.kubeconfigOf(t, &clientcmdapi.AuthInfo{Token: token})
}

func (g *garden) kubeconfigOf(t *testing.T, who *clientcmdapi.AuthInfo) []byte {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"g": {Server: g.URL,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"w": who},
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "g", AuthInfo: "w"}}, CurrentContext: "c",
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// accountToken returns the token of a ServiceAccount, which the garden then accepts.
func (g *garden) accountToken(name string) string {
	user := "system:serviceaccount:garden:" + name
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"RS256"}`)) + "." + encode(fmt.Appendf(nil, `{"sub":%q}`, user)) + "." + encode([]byte("signature"))
	g.users[token] = user
	return token
}

func (g *garden) inspect(at func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at()
}

func (g *garden) called() (calls []string) {
	g.inspect(func() { calls = slices.Clone(g.calls) })
	return calls
}

func (g *garden) deletions() (deleted []string) {
	g.inspect(func() { deleted = slices.Clone(g.deleted) })
	return deleted
}

// notes collects the log.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) add(prefix, args string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintln(&n.text, prefix, args)
}

func (n *notes) hasSecret() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return hasSecret(n.text.String())
}

func hasSecret(text string) bool {
	return strings.Contains(text, "0123456789abcdef") || strings.Contains(text, "fedcba9876543210") || strings.Contains(text, "PRIVATE KEY") ||
		strings.Contains(text, base64.RawURLEncoding.EncodeToString([]byte("signature")))
}
