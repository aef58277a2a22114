package webhook

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
)

const debugToken = "the-token-of-the-test-1"

func (s *served) withCertificate(certPEM, keyPEM []byte) {
	s.Helper()
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		s.Fatal(err)
	}
	transport := s.client.Transport.(*http.Transport)
	transport.CloseIdleConnections()
	transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
}

// TestClientNames checks that a certificate of the authority is not enough if the authority also signs for others, as
// that of a garden does.
func TestClientNames(t *testing.T) {
	for name, want := range map[string]int{
		"gardenlite:apiserver":          http.StatusOK,
		"gardener.cloud:system:seed:a":  http.StatusForbidden,
		"gardenlite:apiserver ":         http.StatusForbidden,
		"GARDENLITE:apiserver":          http.StatusForbidden,
		"system:masters":                http.StatusForbidden,
		"x,CN=gardenlite:apiserver,O=y": http.StatusForbidden,
	} {
		certPEM, keyPEM := issue(t, name)
		s := serve(t, func(c *Config) {
			c.ClientCAs, c.ClientNames, c.Debug = pool(t, certPEM), []string{"gardenlite:apiserver"}, true
		})
		s.withCertificate(certPEM, keyPEM)
		for path, body := range map[string]string{AuthorizationPath: exampleReview, RestrictionPath: exampleAdmission} {
			if status, answer := s.post(path, body); status != want {
				t.Errorf("POST %s as %q: %d %s", path, name, status, answer)
			}
		}
		for _, path := range []string{MetricsPath, GraphPath} {
			if status, answer := s.get(path); status != want {
				t.Errorf("GET %s as %q: %d %s", path, name, status, answer)
			}
		}
	}
}

// tokenServer starts a server with the client authority of a garden, and a debug token.
func tokenServer(t *testing.T, change func(*Config)) *served {
	t.Helper()
	certPEM, _ := issue(t, "gardenlite:apiserver")
	return serve(t, func(c *Config) {
		c.Debug, c.DebugToken = true, debugToken
		c.ClientCAs, c.ClientNames = pool(t, certPEM), []string{"gardenlite:apiserver"}
		if change != nil {
			change(c)
		}
	})
}

// TestDebugTokenInABrowser checks that a browser sends the token once, and then the cookie.
func TestDebugTokenInABrowser(t *testing.T) {
	s := tokenServer(t, nil)
	if status, answer := s.get(GraphPath); status != http.StatusUnauthorized || !strings.Contains(answer, "address") {
		t.Errorf("without anything: %d %q", status, answer)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client.Jar = jar
	var went []*url.URL
	s.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error { went = append(went, r.URL); return nil }
	status, answer := s.get(GraphPath + "?kind=Seed&token=" + debugToken)
	if status != http.StatusOK || !strings.Contains(answer, "Seed local") || strings.Contains(answer, debugToken) {
		t.Fatalf("with the token: %d %q", status, answer)
	}
	if len(went) != 1 || went[0].Path != GraphPath || went[0].RawQuery != "kind=Seed" {
		t.Errorf("redirected to %v", went)
	}
	for _, format := range []string{"html", "json", "dot"} {
		if status, _ := s.get(GraphPath + "?format=" + format); status != http.StatusOK {
			t.Errorf("%s with the cookie: %d", format, status)
		}
	}
	// Neither the cookie nor the token gives access to anything else.
	for _, path := range []string{AuthorizationPath, RestrictionPath} {
		if status, _ := s.post(path+"?token="+debugToken, exampleReview); status != http.StatusUnauthorized {
			t.Errorf("POST %s with token and cookie: %d", path, status)
		}
	}
	if status, _ := s.get(MetricsPath + "?token=" + debugToken); status != http.StatusUnauthorized {
		t.Errorf("metrics: %d", status)
	}
}

func TestDebugCookie(t *testing.T) {
	s := tokenServer(t, nil)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	status, answer, header := s.do(http.MethodGet, GraphPath+"?token="+debugToken, "", "")
	if status != http.StatusSeeOther || header.Get("Location") != GraphPath || header.Get("Referrer-Policy") != "no-referrer" ||
		header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %q %v", status, answer, header)
	}
	cookies := (&http.Response{Header: header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("cookies: %v", cookies)
	}
	cookie := cookies[0]
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != GraphPath || cookie.Domain != "" {
		t.Errorf("cookie: %v", cookie)
	}
	if strings.Contains(cookie.String(), debugToken) {
		t.Errorf("the cookie has the token: %v", cookie)
	}
	with := func(name, value string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+GraphPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.AddCookie(&http.Cookie{Name: name, Value: value})
		return s.answered(request)
	}
	for _, test := range []struct {
		name, value string
		want        int
	}{
		{cookie.Name, cookie.Value, http.StatusOK},
		{cookie.Name, cookie.Value + "0", http.StatusUnauthorized},
		{cookie.Name, "", http.StatusUnauthorized},
		{cookie.Name, debugToken, http.StatusUnauthorized},
		{"token", debugToken, http.StatusUnauthorized},
		{"token", cookie.Value, http.StatusUnauthorized},
	} {
		if got := with(test.name, test.value); got != test.want {
			t.Errorf("cookie %s=%s: %d, want %d", test.name, test.value, got, test.want)
		}
	}
	// The cookie of another token, or of the landscape before a restart.
	if other := newDebugKey("the-token-of-the-test-2"); other.cookieName == cookie.Name || other.cookie == cookie.Value {
		t.Error("another token has the same cookie")
	}
}

func TestWrongDebugTokens(t *testing.T) {
	s := tokenServer(t, nil)
	for _, query := range []string{
		"token=", "token=x", "token=" + debugToken + "x", "token=" + strings.ToUpper(debugToken), "token=x&token=" + debugToken, "token",
	} {
		if status, answer, header := s.do(http.MethodGet, GraphPath+"?"+query, "", ""); status != http.StatusForbidden ||
			len(header.Values("Set-Cookie")) > 0 || strings.Contains(answer, debugToken) {
			t.Errorf("?%s: %d %q %v", query, status, answer, header)
		}
	}
	if status, _ := s.get(GraphPath + "?Token=" + debugToken); status != http.StatusUnauthorized {
		t.Errorf("another parameter: %d", status)
	}
}

// TestDebugTokenAsBearer checks that programs can send the token in a header.
func TestDebugTokenAsBearer(t *testing.T) {
	s := tokenServer(t, nil)
	for _, test := range []struct {
		header string
		want   int
	}{
		{"Bearer " + debugToken, http.StatusOK},
		{"Bearer ", http.StatusUnauthorized},
		{"bearer " + debugToken, http.StatusUnauthorized},
		{"Bearer x" + debugToken, http.StatusUnauthorized},
		{"Basic " + debugToken, http.StatusUnauthorized},
		{debugToken, http.StatusUnauthorized},
	} {
		for _, path := range []string{GraphPath, GraphPath + "?format=json", MetricsPath} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", test.header)
			if got := s.answered(request); got != test.want {
				t.Errorf("GET %s, Authorization %q: %d, want %d", path, test.header, got, test.want)
			}
		}
	}
}

func (s *served) answered(request *http.Request) int {
	s.Helper()
	response, err := s.client.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

// TestDebugTokenWithoutAuthorities checks that a configured token is required also without client authorities.
func TestDebugTokenWithoutAuthorities(t *testing.T) {
	s := serve(t, func(c *Config) { c.Debug, c.DebugToken = true, debugToken })
	if status, _ := s.get(GraphPath); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	if status, _ := s.post(AuthorizationPath, exampleReview); status != http.StatusOK {
		t.Errorf("authorization: %d", status)
	}
}

// TestDebugTokenIsNotNeeded checks that a certificate is enough for the page, and that a token opens nothing if the
// page is disabled.
func TestDebugTokenIsNotNeeded(t *testing.T) {
	certPEM, keyPEM := issue(t, "gardenlite:apiserver")
	s := tokenServer(t, func(c *Config) { c.ClientCAs = pool(t, certPEM) })
	s.withCertificate(certPEM, keyPEM)
	if status, _ := s.get(GraphPath); status != http.StatusOK {
		t.Errorf("with a certificate: %d", status)
	}
	s = tokenServer(t, func(c *Config) { c.Debug = false })
	if status, _ := s.get(GraphPath + "?token=" + debugToken); status != http.StatusNotFound {
		t.Errorf("without debug handlers: %d", status)
	}
}

func TestDebugTokenIsNotLogged(t *testing.T) {
	var logged strings.Builder
	s := tokenServer(t, func(c *Config) {
		c.Log = funcr.New(func(prefix, args string) { logged.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 10})
		c.Graph = brokenGraph{}
	})
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, _ = s.get(GraphPath + "?token=" + debugToken)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+GraphPath+"?name="+debugToken, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+debugToken)
	if got := s.answered(request); got != http.StatusInternalServerError {
		t.Errorf("got %d", got)
	}
	if !strings.Contains(logged.String(), "panic") || strings.Contains(logged.String(), debugToken) {
		t.Errorf("logged: %s", logged.String())
	}
}

// TestAnnouncedBodies checks that a client without a certificate is refused before its body, which never arrives, is
// read.
func TestAnnouncedBodies(t *testing.T) {
	s := tokenServer(t, nil)
	config := s.client.Transport.(*http.Transport).TLSClientConfig
	for range 200 {
		for _, path := range []string{AuthorizationPath, RestrictionPath, MetricsPath} {
			conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), config)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if err := conn.SetDeadline(time.Now().Add(requestTimeout * 2 / 3)); err != nil { // shorter than the server's timeout for a body
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn,
				"POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			want := http.StatusUnauthorized
			if path == MetricsPath {
				want = http.StatusMethodNotAllowed
			}
			if response.StatusCode != want {
				t.Fatalf("%s: %s", path, response.Status)
			}
		}
	}
}
