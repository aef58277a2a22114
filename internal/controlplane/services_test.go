package controlplane

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// TestDial verifies what an API server reaches when it proxies: ports of its Pods' processes, and what it serves itself.
func TestDial(t *testing.T) {
	listen := func() *net.TCPAddr {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l.Addr().(*net.TCPAddr)
	}
	process, local, itself, other := listen(), listen(), listen(), listen()
	pod := netip.AddrPortFrom(netip.MustParseAddr("100.64.0.7"), uint16(process.Port))
	s := &services{local: map[string]*url.URL{"garden/webhooks": {Scheme: "https", Host: local.String()}}, itself: itself.String(),
		servesPod: func(at netip.AddrPort) bool { return at == pod }}
	for address, want := range map[string]bool{
		pod.String():      true,
		local.String():    true,
		itself.String():   true,
		process.String():  false, // not by the address of this machine
		other.String():    false,
		"100.64.0.7:1":    false,
		"localhost:443":   false,
		"example.org:443": false,
		"[::1]:443":       false,
		"":                false,
	} {
		conn, err := s.dial(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "there is nothing at") {
			t.Errorf("%q: %v", address, err)
		}
	}
	s.servesPod = nil
	if _, err := s.dial(t.Context(), "tcp", pod.String()); err == nil {
		t.Error("without processes, a Pod is reached")
	}
}

// TestDiscreet verifies that the client of a webhook sees nothing of what another kind of server answers.
func TestDiscreet(t *testing.T) {
	for _, test := range []struct {
		code       int
		body, want string
	}{
		{200, `{"kind":"AdmissionReview"}`, `{"kind":"AdmissionReview"}`},
		{200, "\n {" + strings.Repeat(" ", 10_000) + "}", "\n {" + strings.Repeat(" ", 10_000) + "}"},
		{200, "secret", ""},
		{200, "", ""},
		{403, `{"secret":1}`, ""},
		{500, "secret", ""},
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Secret", "secret")
			w.WriteHeader(test.code)
			_, _ = io.WriteString(w, test.body)
		}))
		defer server.Close()
		plain := &rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
		resolver := (&services{}).discreet(&webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(string) (*rest.Config, error) { return plain, nil },
		})
		config, err := resolver.ClientConfigFor("x")
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(body) != test.want || response.StatusCode != test.code || test.want == "" && response.Header.Get("X-Secret") != "" {
			t.Errorf("%d %.20q: %d %.20q, %v, %v", test.code, test.body, response.StatusCode, body, response.Header, err)
		}
		if plain.WrapTransport != nil {
			t.Error("the configuration that others use is changed")
		}
	}
}

// TestStandIn verifies which webhooks are answered by stand-ins, and that all others are reached as before.
func TestStandIn(t *testing.T) {
	var reached string
	reach := func(what string) func(context.Context) (net.Conn, error) {
		return func(context.Context) (net.Conn, error) {
			reached = what
			return nil, net.ErrClosed
		}
	}
	s := &services{standIns: map[string]func(context.Context) (net.Conn, error){
		"garden/manager": reach("service"), "manager.x:443": reach("URL"),
	}}
	resolver := s.discreet(&webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) {
			return &rest.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return reach("other")(nil) }}, nil
		},
	})
	config, err := resolver.ClientConfigForService("name", "namespace", 443)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"manager.garden" + standInSuffix: "service", "manager.x:443": "URL", "10.241.0.7:443": "other", "manager.x:80": "other",
		"manager.other" + standInSuffix: "other",
	} {
		if _, _ = config.Dial(t.Context(), "tcp", address); reached != want {
			t.Errorf("%s leads to %q, not to %q", address, reached, want)
		}
	}
}
