package charts

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

func TestPull(t *testing.T) {
	chart := []byte("a chart")
	good := testutil.NewArtifact(t, mediaType, int64(len(chart)), chart)
	altered := testutil.NewArtifact(t, mediaType, int64(len(chart)), chart)
	altered.Blobs[digest.FromBytes(chart)] = []byte("A chart")
	layouts := t.TempDir()
	testutil.WriteLayout(t, filepath.Join(layouts, "c"), map[string]testutil.Artifact{"1": good})
	for name, test := range map[string]struct {
		artifact  testutil.Artifact
		reference string // %s is the registry
		says      string // "" if it succeeds
	}{
		"tag":                     {good, "%s/x/c:1", ""},
		"digest":                  {good, "%s/x/c@" + good.Manifest.Digest.String(), ""},
		"another tag":             {good, "%s/x/c:2", "not found"},
		"no tag":                  {good, "%s/x/c", "it needs a tag or a digest"},
		"no reference":            {good, "x", "invalid reference"},
		"no chart":                {testutil.NewArtifact(t, "text/plain", 7, chart), "%s/x/c:1", "is no chart"},
		"too large":               {testutil.NewArtifact(t, mediaType, maxPacked+1, chart), "%s/x/c:1", "4194304 are allowed"},
		"altered":                 {altered, "%s/x/c:1", "mismatch"},
		"folder":                  {good, "layout://c:1", ""},
		"folder, by digest":       {good, "layout://c@" + good.Manifest.Digest.String(), ""},
		"folder, another tag":     {good, "layout://c:2", "not found"},
		"folder that is not here": {good, "layout://d:1", "no such file"},
		"folder outside":          {good, "layout://../c:1", "must look like"},
		"folder in a folder":      {good, "layout://c/blobs:1", "must look like"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.artifact)
			t.Cleanup(server.Close)
			reference := strings.ReplaceAll(test.reference, "%s", strings.TrimPrefix(server.URL, "http://"))
			got, err := Pull(t.Context(), Source{Reference: reference, Layouts: layouts})
			if test.says == "" && (err != nil || string(got) != string(chart)) {
				t.Errorf("%q, %v", got, err)
			}
			if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v; it should say %q", err, test.says)
			}
		})
	}
	if _, err := Pull(t.Context(), Source{Reference: "layout://c:1"}); err == nil ||
		!strings.Contains(err.Error(), "no folder of OCI layouts") {
		t.Errorf("without a folder: %v", err)
	}
}

// TestPullFromLayoutStaysInside checks that a symbolic link does not lead out of a layout.
func TestPullFromLayoutStaysInside(t *testing.T) {
	secret := []byte("secret")
	layouts, outside := t.TempDir(), filepath.Join(t.TempDir(), "file")
	a := testutil.NewArtifact(t, mediaType, int64(len(secret)), secret)
	testutil.WriteLayout(t, filepath.Join(layouts, "c"), map[string]testutil.Artifact{"1": a})
	blob := filepath.Join(layouts, "c", "blobs", "sha256", fmt.Sprintf("%x", sha256.Sum256(secret)))
	for _, err := range []error{os.WriteFile(outside, secret, 0o600), os.Remove(blob), os.Symlink(outside, blob)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Pull(t.Context(), Source{Reference: "layout://c:1", Layouts: layouts}); err == nil {
		t.Errorf("it reads %q", got)
	}
}

// TestPullWithSecrets pulls from a registry with its own CA that requires credentials. No other registry may get them.
func TestPullWithSecrets(t *testing.T) {
	chart := []byte("a chart")
	a := testutil.NewArtifact(t, mediaType, int64(len(chart)), chart)
	sent := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		sent += user
		if user != "u" || password != "p" {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		a.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	// A registry whose name is not a loopback address is accessed with TLS.
	host := strings.Replace(strings.TrimPrefix(server.URL, "https://"), "127.0.0.1", "example.com", 1)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	secret := func(host string) []byte {
		return fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("u:p")))
	}
	dial := server.Listener.Addr().String()
	for name, test := range map[string]struct {
		source Source
		says   string
	}{
		"all":                  {Source{PullSecret: secret(host), CABundle: ca}, ""},
		"no authority":         {Source{PullSecret: secret(host)}, "certificate"},
		"no credentials":       {Source{CABundle: ca}, "credential not found"},
		"another's":            {Source{PullSecret: secret("example.org"), CABundle: ca}, "credential not found"},
		"credentials unusable": {Source{PullSecret: []byte("secret"), CABundle: ca}, "no Docker configuration"},
		"authority unusable":   {Source{CABundle: []byte("x")}, "no certificate in the CA bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			sent = ""
			test.source.Reference, test.source.dial = host+"/x/c:1", dial
			got, err := Pull(t.Context(), test.source)
			switch {
			case test.says == "" && (err != nil || string(got) != string(chart)):
				t.Errorf("%q, %v", got, err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret\"")):
				t.Errorf("%v; it should say %q", err, test.says)
			case test.says != "" && sent != "":
				t.Errorf("credentials of %q were sent", sent)
			}
		})
	}
}
