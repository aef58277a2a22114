package shootcare

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// server is a fake API server of a shoot. It serves lists by their path, and /readyz.
type server struct {
	// Objects are the objects in the seed that are needed to reach the server: the Secrets of the CAs and the Service.
	Objects []client.Object

	mu       sync.Mutex
	lists    map[string]client.ObjectList
	ready    int
	requests int
	users    map[string]int
	open     map[net.Conn]bool
}

// newServer starts a server that runs until the test ends. Its client CA is valid from now for the given duration.
func newServer(t testing.TB, namespace string, clk clock.PassiveClock, valid time.Duration) *server {
	t.Helper()
	s := &server{lists: map[string]client.ObjectList{}, ready: http.StatusOK, users: map[string]int{}, open: map[net.Conn]bool{}}
	cert, certPEM, keyPEM := authority(t, clk.Now(), clk.Now().Add(valid))
	clients := x509.NewCertPool()
	clients.AddCert(cert)
	listening := httptest.NewUnstartedServer(s)
	listening.EnableHTTP2 = true
	listening.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, Time: clk.Now}
	listening.Config.ConnState = s.connection
	listening.StartTLS()
	t.Cleanup(func() { listening.CloseClientConnections(); listening.Close() })
	_, port, err := net.SplitHostPort(listening.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name string, cert, key []byte) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
				Labels: map[string]string{"managed-by": "secrets-manager", "persist": "true", "name": name}},
			Data: map[string][]byte{"ca.crt": cert, "ca.key": key},
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: spec.ServiceName}}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
		{IP: "127.0.0.1", Ports: []corev1.PortStatus{{Port: int32(number), Protocol: corev1.ProtocolTCP}}}}
	serving := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listening.Certificate().Raw})
	s.Objects = []client.Object{service, secret("ca", serving, nil), secret("ca-client", certPEM, keyPEM)}
	return s
}

func authority(t testing.TB, begin, end time.Time) (cert *x509.Certificate, certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes-client"}, NotBefore: begin.Add(-time.Hour),
		NotAfter: end, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM
}

// Serve sets the response to a list ("/api/v1/nodes"). Other lists are empty.
func (s *server) Serve(path string, list client.ObjectList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[path] = list
}

// Ready sets the status code of /readyz.
func (s *server) Ready(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = code
}

// Requests returns the number of requests so far.
func (s *server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Users returns the number of requests by user.
func (s *server) Users() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	users := map[string]int{}
	for user, n := range s.users {
		users[user] = n
	}
	return users
}

// Open returns the number of open connections.
func (s *server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *server) connection(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(s.open, conn)
	}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	subject := r.TLS.PeerCertificates[0].Subject
	user := subject.CommonName
	for _, group := range subject.Organization {
		user += " " + group
	}
	s.users[user]++
	if r.URL.Path == "/readyz" {
		w.WriteHeader(s.ready)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if list := s.lists[r.URL.Path]; list != nil {
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"List","items":[]}`))
}
