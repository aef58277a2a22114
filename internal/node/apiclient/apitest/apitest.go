// Package apitest provides an API server in memory for the tests of a node's programs, with only the functions that
// they need. It may import nothing of the project.
package apitest

import (
	"crypto"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/controller/certificates/authority"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Life is the lifetime of the certificates that Server signs.
const Life = 24 * time.Hour

// Token is the bearer token that Server accepts instead of a client certificate.
const Token = "abcdef.0123456789abcdef"

// Server is an API server in memory. It keeps objects by their paths.
type Server struct {
	URL string
	CA  []byte

	clock     clock.PassiveClock
	authority authority.CertificateAuthority
	mu        sync.Mutex
	objects   map[string]client.Object
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
	s := &Server{
		clock: clk, objects: map[string]client.Object{}, changed: make(chan struct{}),
		requests: map[string]int{}, refuse: map[string]int{}, stop: make(chan struct{}),
	}
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(func() { close(s.stop); server.CloseClientConnections(); server.Close() })
	// The certificate of httptest is that of an authority.
	s.authority = authority.CertificateAuthority{
		Certificate: server.Certificate(), PrivateKey: server.TLS.Certificates[0].PrivateKey.(crypto.Signer)}
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
func (s *Server) Put(t testing.TB, at string, obj client.Object) {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	obj = obj.DeepCopyObject().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(kinds[0]) // clients recognize the objects of a watch by it
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(at, obj)
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

// put stores an object, which nothing changes afterwards.
func (s *Server) put(at string, obj client.Object) client.Object {
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("uid-" + strconv.Itoa(s.version)))
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
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	who := user(r)
	if who == "" {
		answer(w, r, http.StatusUnauthorized, nil)
		return
	}
	if r.ProtoMajor != 2 {
		answer(w, r, http.StatusHTTPVersionNotSupported, nil)
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
		answer(w, r, code, nil)
		return
	}
	code, obj := s.handle(r, body)
	answer(w, r, code, obj)
}

func (s *Server) handle(r *http.Request, body []byte) (int, client.Object) {
	at := strings.TrimSuffix(r.URL.Path, "/status")
	is, ok := s.objects[at]
	switch {
	case !ok && r.Method != http.MethodPost:
		return http.StatusNotFound, nil
	case r.Method == http.MethodGet || r.Method == http.MethodDelete: // the tests delete objects, clients do not
		return http.StatusOK, is
	case r.Method == http.MethodPatch:
		body = patched(types.PatchType(r.Header.Get("Content-Type")), is, body)
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	obj, isObject := decoded.(client.Object)
	switch {
	case err != nil || !isObject:
		return http.StatusBadRequest, nil
	case r.Method == http.MethodPost:
		return s.create(at, obj)
	}
	return http.StatusOK, s.put(at, obj)
}

// patched returns an object after a patch; nil if the patch is not valid.
func patched(kind types.PatchType, is client.Object, patch []byte) (after []byte) {
	before, err := json.Marshal(is)
	if err == nil && kind == types.StrategicMergePatchType {
		after, err = strategicpatch.StrategicMergePatch(before, patch, is)
	} else if err == nil {
		after, err = jsonpatch.MergePatch(before, patch)
	}
	if err != nil {
		return nil
	}
	return after
}

func (s *Server) create(collection string, obj client.Object) (int, client.Object) {
	if obj.GetName() == "" {
		obj.SetName(obj.GetGenerateName() + strconv.Itoa(s.version))
	}
	at := path.Join(collection, obj.GetName())
	if _, exists := s.objects[at]; exists {
		return http.StatusConflict, nil
	}
	switch obj := obj.(type) {
	case *certificatesv1.CertificateSigningRequest:
		obj.Status.Certificate = s.sign(obj.Spec.Request)
	case *authenticationv1.TokenRequest:
		obj.Status.Token = fmt.Sprint("token-", s.version)
	}
	return http.StatusCreated, s.put(at, obj)
}

func (s *Server) sign(request []byte) []byte {
	block, _ := pem.Decode(request)
	der, err := s.authority.Sign(block.Bytes, authority.PermissiveSigningPolicy{TTL: Life, Now: s.clock.Now})
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
	send := func(kind watch.EventType, obj runtime.Object) {
		_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: obj}})
		w.(http.Flusher).Flush()
	}
	s.mu.Lock()
	expired := s.noHistory && seen > 0 && seen < s.version
	s.mu.Unlock()
	if expired {
		send(watch.Error, statusOf(apierrors.NewResourceExpired("too old resource version")))
		return
	}
	for {
		s.mu.Lock()
		changed, obj := s.changed, s.objects[path.Join(r.URL.Path, name)]
		s.mu.Unlock()
		if obj != nil {
			if version, _ := strconv.Atoi(obj.GetResourceVersion()); version > seen {
				seen = version
				send(watch.Modified, obj)
			}
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

// answer writes an object, or the error of the status code.
func answer(w http.ResponseWriter, r *http.Request, code int, obj runtime.Object) {
	if code >= http.StatusBadRequest {
		obj = statusOf(apierrors.NewGenericServerResponse(code, r.Method, schema.GroupResource{}, "", "", 0, false))
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(obj)
}

func statusOf(err *apierrors.StatusError) *metav1.Status {
	status := err.ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}
