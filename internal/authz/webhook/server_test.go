package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// served is a server for a test, with TLS on loopback.
type served struct {
	testing.TB
	url    string
	client *http.Client
	synced atomic.Bool
	files  [2]string
}

// serve runs a server with an authorizer and a restriction that allow everything, and a small graph, unless the test
// changes the configuration.
func serve(t testing.TB, change func(*Config)) *served {
	t.Helper()
	s := &served{TB: t}
	s.synced.Store(true)
	certPEM, keyPEM := issue(t, "first")
	dir := t.TempDir()
	s.files = [2]string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	write(t, s.files[0], certPEM)
	write(t, s.files[1], keyPEM)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		Authorizer:  authorizer.AuthorizerFunc(allowAll),
		Restriction: restrictionFunc(admitAll),
		Graph:       exampleGraph(),
		Synced:      s.synced.Load,
		Missing:     func() string { return "shoots.core.gardener.cloud" },
		Listener:    listener,
		CertFile:    s.files[0], KeyFile: s.files[1],
	}
	if change != nil {
		change(&config)
	}
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Run(ctx) }()
	s.url = "https://" + listener.Addr().String()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(t, certPEM), ServerName: "localhost"}, ForceAttemptHTTP2: true}
	s.client = &http.Client{Transport: transport, Timeout: testutil.Timeout}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s
}

func (s *served) do(method, path, contentType, body string) (status int, answer string, header http.Header) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(content), response.Header
}

func (s *served) get(path string) (status int, answer string) {
	s.Helper()
	status, answer, _ = s.do(http.MethodGet, path, "", "")
	return status, answer
}

func (s *served) post(path, body string) (status int, answer string) {
	s.Helper()
	status, answer, _ = s.do(http.MethodPost, path, "application/json; charset=utf-8", body)
	return status, answer
}

func TestReadiness(t *testing.T) {
	s := serve(t, nil)
	s.synced.Store(false)
	for _, test := range []struct {
		path   string
		status int
		says   string
	}{
		{HealthPath, http.StatusOK, "ok"},
		{ReadyPath, http.StatusServiceUnavailable, "waiting for shoots.core.gardener.cloud"},
		{GraphPath, http.StatusNotFound, "not found"}, // debug handlers are off unless enabled
	} {
		if status, answer := s.get(test.path); status != test.status || !strings.Contains(answer, test.says) {
			t.Errorf("GET %s: %d %q, want %d %q", test.path, status, answer, test.status, test.says)
		}
	}
	if status, answer := s.post(AuthorizationPath, exampleReview); status != http.StatusServiceUnavailable ||
		strings.Contains(answer, "allowed") {
		t.Errorf("authorization before the graph has synced: %d %q", status, answer)
	}
	s.synced.Store(true)
	if status, _ := s.get(ReadyPath); status != http.StatusOK {
		t.Errorf("ready: %d", status)
	}
	if status, answer := s.post(AuthorizationPath, exampleReview); status != http.StatusOK || !strings.Contains(answer, `"allowed":true`) {
		t.Errorf("authorization after: %d %q", status, answer)
	}
}

func TestMethodsAndMediaTypes(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{AuthorizationPath, RestrictionPath} {
		if status, _ := s.get(path); status != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: %d", path, status)
		}
		for _, contentType := range []string{"", "text/plain", "application/vnd.kubernetes.protobuf", "application/json;;"} {
			if status, _, _ := s.do(http.MethodPost, path, contentType, exampleReview); status != http.StatusUnsupportedMediaType {
				t.Errorf("POST %s as %q: %d", path, contentType, status)
			}
		}
	}
	for path, limit := range map[string]int{AuthorizationPath: maxAuthorizationBody, RestrictionPath: maxAdmissionBody} {
		if status, _ := s.post(path, `{"x":"`+strings.Repeat("x", limit)+`"}`); status != http.StatusRequestEntityTooLarge {
			t.Errorf("POST %s with %d bytes: %d", path, limit, status)
		}
	}
}

func TestPanicFailsClosed(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Authorizer = authorizer.AuthorizerFunc(
			func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) { panic("of a test") })
		c.Restriction = restrictionFunc(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { panic("of a test") })
	})
	for path, body := range map[string]string{AuthorizationPath: exampleReview, RestrictionPath: exampleAdmission} {
		if status, answer := s.post(path, body); status != http.StatusInternalServerError || strings.Contains(answer, "test") {
			t.Errorf("%s: %d %q", path, status, answer)
		}
		want := `webhook_failed_requests_total{code="500",path="` + path + `"} 1`
		if _, metrics := s.get(MetricsPath); !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	s := serve(t, nil)
	certPEM, keyPEM := issue(t, "second")
	name := func() string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"),
			&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // looks at the certificate
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "first" {
		t.Fatalf("serves %q", got)
	}
	write(t, s.files[0], certPEM) // the old key does not match it
	if got := name(); got != "first" {
		t.Errorf("while the files do not fit together: %q", got)
	}
	write(t, s.files[1], keyPEM)
	if got := name(); got != "second" {
		t.Errorf("after the certificate was replaced: %q", got)
	}
}

func TestClientCertificates(t *testing.T) {
	certPEM, keyPEM := issue(t, "client")
	s := serve(t, func(c *Config) { c.ClientCAs, c.Debug = pool(t, certPEM), true })
	for _, path := range []string{MetricsPath, GraphPath} {
		if status, _ := s.get(path); status != http.StatusUnauthorized {
			t.Errorf("GET %s without a client certificate: %d", path, status)
		}
	}
	if status, _ := s.post(AuthorizationPath, exampleReview); status != http.StatusUnauthorized {
		t.Errorf("authorization without a client certificate: %d", status)
	}
	if status, _ := s.get(HealthPath); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
	s.withCertificate(certPEM, keyPEM)
	if status, _ := s.post(AuthorizationPath, exampleReview); status != http.StatusOK {
		t.Errorf("authorization with a client certificate: %d", status)
	}
}

func TestConfigIsChecked(t *testing.T) {
	ok := func(change func(*Config)) Config {
		certPEM, keyPEM := issue(t, "first")
		dir := t.TempDir()
		c := Config{
			Authorizer: authorizer.AuthorizerFunc(allowAll), Restriction: restrictionFunc(admitAll), Graph: exampleGraph(), Debug: true,
			Synced: func() bool { return true }, Listener: &net.TCPListener{},
			CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
		}
		write(t, c.CertFile, certPEM)
		write(t, c.KeyFile, keyPEM)
		change(&c)
		return c
	}
	if _, err := New(ok(func(*Config) {})); err != nil {
		t.Fatal(err)
	}
	for what, config := range map[string]Config{
		"nothing":            {},
		"authorizer":         ok(func(c *Config) { c.Authorizer = nil }),
		"restriction":        ok(func(c *Config) { c.Restriction = nil }),
		"synced":             ok(func(c *Config) { c.Synced = nil }),
		"listener":           ok(func(c *Config) { c.Listener = nil }),
		"graph":              ok(func(c *Config) { c.Graph = nil }),
		"certificate":        ok(func(c *Config) { c.CertFile = "/nowhere" }),
		"short token":        ok(func(c *Config) { c.DebugToken = "123456789012345" }),
		"unused names":       ok(func(c *Config) { c.ClientNames = []string{"x"} }),
		"negative limit":     ok(func(c *Config) { c.MaxAdmissions = -1 }),
		"negative limit too": ok(func(c *Config) { c.MaxAuthorizations = -1 }),
	} {
		if _, err := New(config); err == nil {
			t.Errorf("accepted without, or with, %s", what)
		}
	}
}

type restrictionFunc func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

func (f restrictionFunc) Handle(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return f(r)
}

func admitAll(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func allowAll(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// exampleGraph returns a graph with one seed, two shoots and their objects, and names that would break a page without
// escaping.
func exampleGraph() *graph.Graph {
	g := graph.New()
	seed := graph.Vertex{Kind: graph.KindSeed, Name: "local"}
	g.Set(seed, []graph.Edge{{From: graph.Vertex{Kind: graph.KindNamespace, Name: "seed-local"}, To: seed}})
	for _, name := range []string{"a", "b"} {
		shoot := graph.Vertex{Kind: graph.KindShoot, Namespace: "garden-dev", Name: name}
		g.Set(shoot, []graph.Edge{
			{From: graph.Vertex{Kind: graph.KindNamespace, Name: "garden-dev"}, To: shoot},
			{From: graph.Vertex{Kind: graph.KindCloudProfile, Name: "local"}, To: shoot},
			{From: graph.Vertex{Kind: graph.KindSecret, Namespace: "garden-dev", Name: name + ".ca-cluster"}, To: shoot},
			{From: shoot, To: seed},
		})
	}
	g.Set(graph.Vertex{Kind: graph.KindProject, Name: hostileName}, []graph.Edge{{
		From: graph.Vertex{Kind: graph.KindProject, Name: hostileName}, To: graph.Vertex{Kind: graph.KindNamespace, Name: "garden-dev"},
	}})
	return g
}

const hostileName = `"'></svg></script><script>document.title='broken'</script><img src=x onerror=document.title='broken'>`

// issue returns a self-signed certificate for localhost and its key, in PEM.
func issue(t testing.TB, name string) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func pool(t testing.TB, certPEM []byte) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(bytes.TrimSpace(certPEM)) {
		t.Fatal("no certificate")
	}
	return p
}

func write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	// On file systems with coarse timestamps, two writes could have the same time, and the size may be the same.
	later := time.Now().Add(time.Duration(len(content)) * time.Millisecond)
	if err := os.Chtimes(name, later, later); err != nil {
		t.Fatal(err)
	}
}
