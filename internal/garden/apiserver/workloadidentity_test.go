package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/util/keyutil"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestIssuerKey checks that an issuer's key does not change, that processes with the same key for service account
// tokens derive the same issuer's key, and that other processes derive another one.
func TestIssuerKey(t *testing.T) {
	write := func(dir string) []byte {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		data, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, serviceAccountKeyFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		return data
	}
	load := func(dir string) *ecdsa.PrivateKey {
		key, err := issuerKey(dir)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	one, two, other := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(two, serviceAccountKeyFile), write(one), 0o600); err != nil {
		t.Fatal(err)
	}
	write(other)
	key := load(one)
	if !key.Equal(load(two)) || key.Equal(load(other)) {
		t.Error("a key of its own for each service account key is wanted")
	}
	write(one)
	if !key.Equal(load(one)) {
		t.Error("it has changed")
	}
	if info, err := os.Stat(filepath.Join(one, issuerKeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(one, issuerKeyFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := issuerKey(one); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Error(err)
	}
	if _, err := issuerKey(t.TempDir()); err == nil {
		t.Error("there is nothing to make it from")
	}
}

func TestDiscovery(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, issuerKeyFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	issuer, err := newIssuer(dir, "127.0.0.1:6443", clocktesting.NewFakePassiveClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	paths := mux.NewPathRecorderMux("test")
	if err := serveDiscovery(paths, issuer); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]int{
		"GET /garden/workload-identity/issuer/.well-known/openid-configuration": http.StatusOK,
		"GET /garden/workload-identity/issuer/jwks":                             http.StatusOK,
		"POST /garden/workload-identity/issuer/jwks":                            http.StatusMethodNotAllowed,
		"GET /garden/workload-identity/issuer/key":                              http.StatusNotFound,
	} {
		method, target, _ := strings.Cut(path, " ")
		answer := httptest.NewRecorder()
		paths.ServeHTTP(answer, httptest.NewRequest(method, target, nil))
		if answer.Code != code || strings.Contains(answer.Body.String(), `"d"`) {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}
