package apiclient

import (
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestConnections checks that clients with the same certificate share a connection, that another certificate has its
// own, and that Close closes them.
func TestConnections(t *testing.T) {
	var connections, made atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "Node", "apiVersion": "v1"}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			connections.Add(1)
			made.Add(1)
		case http.StateClosed:
			connections.Add(-1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var clients []*Client
	read := func(certificate []byte) {
		t.Helper()
		c, err := New(Credentials{Server: server.URL, CA: ca, Certificate: certificate})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		if _, err := c.Core.Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for want := range int32(2) {
		certificate, key, err := certutil.GenerateSelfSignedCertKey("node", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			read(append(certificate, key...))
		}
		if n := made.Load(); n != want+1 {
			t.Errorf("clients with %d certificates have %d connections", want+1, n)
		}
	}
	for _, c := range clients {
		c.Close()
		c.Close()
	}
	testutil.EventuallyTrue(t, "no connection", func() bool { return connections.Load() == 0 })
}

func TestInvalidCredentials(t *testing.T) {
	for name, c := range map[string]Credentials{
		"no TLS":               {Server: "http://127.0.0.1", CA: []byte("x"), Token: "t"},
		"no host":              {Server: "https://", CA: []byte("x"), Token: "t"},
		"no authority":         {Server: "https://127.0.0.1", Token: "t"},
		"an invalid authority": {Server: "https://127.0.0.1", CA: []byte("x"), Token: "t"},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// roundTripper answers all requests with zeros without end.
type roundTripper struct{ deadline time.Time }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func (r *roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	r.deadline, _ = request.Context().Deadline()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(zeros{})}, nil
}

// TestLimits checks that responses end, except those of watches.
func TestLimits(t *testing.T) {
	for query, limited := range map[string]bool{"limit=1": true, "watch=true": false} {
		url := "https://x/api/v1/pods?" + query
		next := &roundTripper{}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		response, err := limits{next}.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(next.deadline); next.deadline.IsZero() == limited || left > requestTimeout {
			t.Errorf("%s: %s are left", url, left)
		}
		var tooLarge *http.MaxBytesError
		if n, err := io.CopyN(io.Discard, response.Body, maxResponse+1); errors.As(err, &tooLarge) != limited {
			t.Errorf("%s: %d bytes, error %v", url, n, err)
		}
		_ = response.Body.Close()
	}
}
