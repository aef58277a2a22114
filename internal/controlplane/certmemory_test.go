package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestCertMemory: it is only remembered whose a certificate is, only while it and its authorities are the same, and not for long.
func TestCertMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clocktesting.NewFakePassiveClock(time.Now())
		cert := func(raw string) *x509.Certificate {
			return &x509.Certificate{Raw: []byte(raw), NotBefore: clock.Now().Add(-time.Hour), NotAfter: clock.Now().Add(time.Hour)}
		}
		alice, between, other := cert("alice"), cert("between"), cert("other")
		bundle, asked, fails := []byte("authority"), 0, error(nil)
		byCert := map[string][]string{user.CredentialIDKey: {"X509SHA256=1"}}
		who := &user.DefaultInfo{Name: "alice", Extra: byCert}
		memory := newCertMemory(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			asked++
			return &authenticator.Response{User: who}, fails == nil, fails
		}), clock, func() []byte { return bundle })
		ask := func(what string, want int, header string, certs ...*x509.Certificate) {
			t.Helper()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.TLS = &tls.ConnectionState{PeerCertificates: certs}
			if header != "" {
				r.Header.Set(header, "x")
			}
			before := asked
			response, ok, err := memory.AuthenticateRequest(r)
			if ok != (fails == nil) || !errors.Is(err, fails) || ok && response.User.GetName() != "alice" {
				t.Errorf("%s: %v, %v, %v", what, response, ok, err)
			}
			if asked-before != want {
				t.Errorf("%s: asked %d times, not %d", what, asked-before, want)
			}
		}
		ask("the first time", 1, "", alice)
		ask("again", 0, "User-Agent", alice)
		ask("another one", 1, "", other)
		ask("with another authority in between", 1, "", alice, between)
		ask("with that again", 0, "", alice, between)
		ask("in another order", 1, "", between, alice)
		for _, header := range []string{"Authorization", "X-Remote-User", "X-Remote-Extra-Some", "Sec-WebSocket-Protocol"} {
			ask("with "+header, 1, header, alice)
		}
		ask("none", 1, "")
		ask("none again", 1, "")

		time.Sleep(certMemoryTime)
		ask("after a while", 1, "", alice)
		bundle = []byte("authority") // the same text in another file
		ask("with new authorities", 1, "", alice)
		ask("again with them", 0, "", alice)
		ask("the other one with them", 1, "", other)

		clock.SetTime(alice.NotAfter.Add(time.Second))
		fails = errors.New("expired")
		ask("expired", 1, "", alice)
		clock.SetTime(alice.NotBefore.Add(-time.Second))
		ask("not valid yet", 1, "", alice)
		clock.SetTime(alice.NotBefore.Add(time.Hour))
		stranger := cert("stranger")
		ask("one that fails", 1, "", stranger)
		ask("one that fails again", 1, "", stranger)

		fails = nil
		who = &user.DefaultInfo{Name: "alice", Extra: map[string][]string{user.CredentialIDKey: {"JTI=1"}}}
		ask("one that is not known by it", 1, "", stranger)
		ask("one that is not known by it again", 1, "", stranger)

		who = &user.DefaultInfo{Name: "alice", Extra: byCert}
		for i := range 2 * certMemorySize {
			ask("many", 1, "", cert(string(rune(i))+"many"))
		}
		if len(memory.known) > certMemorySize {
			t.Errorf("%d are remembered", len(memory.known))
		}
	})
}
