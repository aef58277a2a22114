// Package apitest provides an API server in memory for the tests of a node's programs, with only the functions that
// they need. It may import API types only.
package apitest

import (
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
	"math/big"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// Life is the lifetime of the certificates that Server signs.
const Life = 24 * time.Hour

// Token is the bearer token that Server accepts instead of a client certificate.
const Token = "abcdef.0123456789abcdef"

// Server is an API server in memory. It keeps objects as JSON, by their paths.
type Server struct {
	URL string
	CA  []byte

	clock     clock.PassiveClock
	key       *ecdsa.PrivateKey
	cert      *x509.Certificate
	mu        sync.Mutex
	objects   map[string]map[string]any
	version   int
	changed   chan struct{}
	requests  map[string]int
	refuse    map[string]int
	noHistory bool
	stop      chan struct{}
}

// New starts a server that ends with the test.
func New(t testing.TB, clk clock.PassiveClock) *Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		clock: clk, key: key, objects: map[string]map[string]any{}, changed: make(chan struct{}), requests: map[string]int{},
		refuse: map[string]int{}, stop: make(chan struct{}),
		cert: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: clk.Now(),
			NotAfter: clk.Now().Add(1000 * Life), IsCA: true, BasicConstraintsValid: true},
	}
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(func() { close(s.stop); server.CloseClientConnections(); server.Close() })
	s.URL = server.URL
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return s
}

// Requests returns how often a request, such as "GET /api/v1/nodes/x by system:node:x", was received since the start.
func (s *Server) Requests(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[what]
}

// Refuse makes the server answer a request ("GET /api/v1/nodes/x") with a status code from now on; 0 ends that.
func (s *Server) Refuse(what string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[what] = code
}

// ForgetHistory makes the server refuse watches from an earlier version than the latest, as an API server does that has
// started after it.
func (s *Server) ForgetHistory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noHistory = true
}

// Put stores an object at a path.
func (s *Server) Put(t testing.TB, at string, obj any) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(at, content)
}

// Get reads the object at a path, and reports whether it exists.
func (s *Server) Get(t testing.TB, at string, into any) bool {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, ok := s.objects[at]
	if ok {
		data, err := json.Marshal(obj)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return ok
}

// Delete deletes the object at a path.
func (s *Server) Delete(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, at)
}

func (s *Server) put(at string, obj map[string]any) map[string]any {
	s.version++
	meta, _ := obj["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		obj["metadata"] = meta
	}
	meta["resourceVersion"] = strconv.Itoa(s.version)
	if meta["uid"] == nil {
		meta["uid"] = "uid-" + strconv.Itoa(s.version)
	}
	s.objects[at] = obj
	close(s.changed)
	s.changed = make(chan struct{})
	return obj
}

func user(r *http.Request) string {
	if len(r.TLS.PeerCertificates) > 0 {
		return r.TLS.PeerCertificates[0].Subject.CommonName
	}
	if r.Header.Get("Authorization") == "Bearer "+Token {
		return "bootstrap"
	}
	return ""
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := user(r)
	if who == "" {
		answer(w, http.StatusUnauthorized, nil)
		return
	}
	if r.ProtoMajor != 2 {
		answer(w, http.StatusHTTPVersionNotSupported, nil)
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	what := r.Method + " " + r.URL.Path
	s.requests[what+" by "+who]++
	if code := s.refuse[what]; code != 0 {
		answer(w, code, nil)
		return
	}
	code, obj := s.handle(r, body)
	answer(w, code, obj)
}

func (s *Server) handle(r *http.Request, body []byte) (int, any) {
	at := strings.TrimSuffix(r.URL.Path, "/status")
	is, ok := s.objects[at]
	given := map[string]any{}
	if err := json.Unmarshal(body, &given); len(body) > 0 && err != nil {
		return http.StatusBadRequest, nil
	}
	switch {
	case r.Method == http.MethodPost:
		return s.create(at, given)
	case !ok:
		return http.StatusNotFound, nil
	case r.Method == http.MethodPut:
		return http.StatusOK, s.put(at, given)
	case r.Method == http.MethodPatch:
		before, _ := json.Marshal(is)
		after, err := patched(r.Header.Get("Content-Type"), before, body)
		obj := map[string]any{}
		if err == nil {
			err = json.Unmarshal(after, &obj)
		}
		if err != nil {
			return http.StatusBadRequest, nil
		}
		return http.StatusOK, s.put(at, obj)
	}
	return http.StatusOK, is
}

func patched(kind string, before, patch []byte) ([]byte, error) {
	if types.PatchType(kind) == types.StrategicMergePatchType {
		return strategicpatch.StrategicMergePatch(before, patch, corev1.Node{})
	}
	return jsonpatch.MergePatch(before, patch)
}

func (s *Server) create(collection string, obj map[string]any) (int, any) {
	meta := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		name = fmt.Sprint(meta["generateName"], s.version)
		meta["name"] = name
	}
	at := path.Join(collection, name)
	if _, exists := s.objects[at]; exists {
		return http.StatusConflict, nil
	}
	if strings.HasSuffix(collection, "certificatesigningrequests") {
		obj["status"] = map[string]any{"certificate": base64.StdEncoding.EncodeToString(s.sign(obj))}
	}
	if strings.HasSuffix(collection, "/token") {
		obj["status"] = map[string]any{"token": fmt.Sprint("token-", s.version)}
	}
	return http.StatusCreated, s.put(at, obj)
}

func (s *Server) sign(obj map[string]any) []byte {
	request, _ := base64.StdEncoding.DecodeString(obj["spec"].(map[string]any)["request"].(string))
	block, _ := pem.Decode(request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(int64(s.version)), Subject: csr.Subject, NotBefore: s.clock.Now(), NotAfter: s.clock.Now().Add(Life),
	}, s.cert, csr.PublicKey, s.key)
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// watch sends the object that the field selector names whenever it has changed after the given resource version.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	seen, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	s.mu.Lock()
	expired := s.noHistory && seen > 0 && seen < s.version
	s.mu.Unlock()
	if expired {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": watch.Error, "object": metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
		}})
		return
	}
	for {
		s.mu.Lock()
		changed, obj := s.changed, s.objects[path.Join(r.URL.Path, name)]
		var data []byte
		if obj != nil {
			version, _ := strconv.Atoi(obj["metadata"].(map[string]any)["resourceVersion"].(string))
			if version > seen {
				seen = version
				data, _ = json.Marshal(map[string]any{"type": watch.Modified, "object": obj})
			}
		}
		s.mu.Unlock()
		if data != nil {
			_, _ = w.Write(data)
			w.(http.Flusher).Flush()
		}
		select {
		case <-changed:
		case <-s.stop:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func answer(w http.ResponseWriter, code int, obj any) {
	if obj == nil {
		obj = metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: http.StatusText(code)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(obj)
}

var reasons = map[int]metav1.StatusReason{
	http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusConflict: metav1.StatusReasonAlreadyExists,
}
