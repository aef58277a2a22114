package httpserver

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

func serve(t *testing.T, handler http.HandlerFunc) (*httptest.Server, func(request string) (*http.Response, *tls.Conn)) {
	t.Helper()
	s := httptest.NewUnstartedServer(WithEarlyResponse(handler))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, func(request string) (*http.Response, *tls.Conn) {
		t.Helper()
		conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test server
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(testutil.Timeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return response, conn
	}
}

// TestAnnouncedBodies: a response does not wait for a body that the handler does not read, and the connection ends.
func TestAnnouncedBodies(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"with a status":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) },
		"without a status": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "who are you?\n") },
		"without a body":   func(http.ResponseWriter, *http.Request) {},
	} {
		for _, length := range []string{"Content-Length: 100", "Content-Length: 10000000", "Transfer-Encoding: chunked"} {
			t.Run(name+", "+length, func(t *testing.T) {
				_, send := serve(t, handler)
				response, conn := send("POST / HTTP/1.1\r\nHost: x\r\n" + length + "\r\n\r\n")
				if body, err := io.ReadAll(response.Body); err != nil || !response.Close {
					t.Errorf("%d %q, %v; the connection is closed: %v", response.StatusCode, body, err, response.Close)
				}
				if _, err := io.Copy(io.Discard, conn); err != nil {
					t.Errorf("the connection does not end: %v", err)
				}
			})
		}
	}
}

// TestOtherRequests: all others keep their connections, and handlers get their bodies.
func TestOtherRequests(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hijack" {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
				_ = conn.Close()
			}
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if _, ok := w.(http.Flusher); !ok {
			t.Error("the writer does not flush")
		}
		_, _ = fmt.Fprintf(w, "%s %d", r.RemoteAddr, len(body))
	})
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	http1 := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer http1.CloseIdleConnections()
	for name, client := range map[string]*http.Client{"HTTP/1.1": http1, "HTTP/2": s.Client()} {
		first := ""
		for _, length := range []int{0, 1, 5000000, 10} {
			response, err := client.Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", length)))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			from, got, _ := strings.Cut(string(answer), " ")
			if err != nil || got != fmt.Sprint(length) {
				t.Errorf("%s, %d bytes: %q, %v", name, length, answer, err)
			}
			if first == "" {
				first = from
			}
			if from != first {
				t.Errorf("%s: a request came over another connection", name)
			}
		}
	}
	response, err := http1.Post(s.URL+"/hijack", "text/plain", strings.NewReader("x"))
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("%v, %v", response, err)
	}
}
