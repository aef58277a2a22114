package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Paths of volumes are rewritten where they stand as paths.
func TestRewrite(t *testing.T) {
	m := mounts{{"/etc/config/sub", "/pod/v2"}, {"/etc/config", "/pod/v1"}}
	for text, want := range map[string]string{
		"/etc/config":                        "/pod/v1",
		"/etc/config/":                       "/pod/v1/",
		"--file=/etc/config/a.yaml":          "--file=/pod/v1/a.yaml",
		"/etc/config/sub/a":                  "/pod/v2/a",
		"/etc/config/subject":                "/pod/v1/subject",
		"/etc/configs":                       "/etc/configs",
		"/etc/config.yaml":                   "/etc/config.yaml",
		"/root/etc/config":                   "/root/etc/config",
		"https://example.com/etc/config":     "https://example.com/etc/config",
		"/etc/config/a:/etc/config/b,/other": "/pod/v1/a:/pod/v1/b,/other",
		"tokenFile: \"/etc/config/token\"\n": "tokenFile: \"/pod/v1/token\"\n",
		"":                                   "",
	} {
		left := len(want)
		if got, err := m.rewrite(text, &left); got != want || err != nil || left != 0 {
			t.Errorf("%q becomes %q, want %q; %d bytes are left: %v", text, got, want, left, err)
		}
	}
}

// TestRewriteIsLimited checks the limit of the result: the folder of a mount may be much longer than its path.
func TestRewriteIsLimited(t *testing.T) {
	left := 1 << 20
	m := mounts{{"/a", "/" + strings.Repeat("b/", 50000)}}
	if text, err := m.rewrite(strings.Repeat("/a:", 1<<20), &left); err == nil {
		t.Errorf("it has %d bytes", len(text))
	}
}

func TestWorkingDir(t *testing.T) {
	m := mounts{{"/data", "/pod/v1"}}
	for in, want := range map[string]string{
		"": "/home", "/": "/home", "/etc": "/home", "/data": "/pod/v1", "/data/a": "/pod/v1/a", "/data/../etc": "/home", "/database": "/home",
	} {
		if got := m.folder(in, "/home"); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// A subPath does not lead out of its volume, by itself or by a symbolic link that a process has made.
func TestSubPath(t *testing.T) {
	volume, outside := t.TempDir(), t.TempDir()
	for link, to := range map[string]string{"out": outside, "up": "..", "in": "inside"} {
		if err := os.Symlink(to, filepath.Join(volume, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(volume, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	for subPath, ok := range map[string]bool{
		"inside": true, "new/folder": true, "in": true, "inside/../inside": true,
		"..": false, "../" + filepath.Base(outside): false, "out": false, "out/new": false, "up": false, outside: false,
	} {
		if err := checkSubPath(volume, subPath); (err == nil) != ok {
			t.Errorf("subPath %q: %v", subPath, err)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside of the volume there is %v, %v", entries, err)
	}
}

// Variables from which a loader or a runtime reads code are not taken from a Pod.
func TestReservedVariables(t *testing.T) {
	for _, name := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PATH", "HOME", "TMPDIR",
		"PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "BASH_FUNC_date%%", "ZDOTDIR", "OPENSSL_CONF", "OPENSSL_MODULES",
		"LUA_INIT", "DOTNET_STARTUP_HOOKS"} {
		if !isReserved(name) {
			t.Errorf("%s is taken from the Pod", name)
		}
	}
	for _, name := range []string{"KUBECONFIG", "LEADER", "POD_NAME", "HTTP_PROXY", "PATHS"} {
		if isReserved(name) {
			t.Errorf("%s is not taken from the Pod", name)
		}
	}
}
