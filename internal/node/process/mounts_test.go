package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		// What leads upwards would reach the landscape's files.
		"--kubeconfig=/etc/config/../../../kubeconfig": "--kubeconfig=/etc/config/../../../kubeconfig",
		"/etc/config/..":                   "/etc/config/..",
		"/etc/config/sub/../../../x":       "/etc/config/sub/../../../x",
		"/etc/config/a b/../../../../x":    "/etc/config/a b/../../../../x",
		"/etc/config/é/../../x":            "/etc/config/é/../../x",
		"\"/etc/config/..\"":               "\"/etc/config/..\"",
		"/etc/config/..data/x":             "/pod/v1/..data/x",
		"/etc/config/...":                  "/pod/v1/...",
		"a: /etc/config/x\nb: /other/../y": "a: /pod/v1/x\nb: /other/../y",
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

// TestKubeconfigOfPod checks that a Pod chooses the identity of its process only with files in its mounts.
func TestKubeconfigOfPod(t *testing.T) {
	volume, outside := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(volume, "own"), filepath.Join(outside, "kubeconfig")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": filepath.Join(outside, "kubeconfig"), "up": "..", "in": "own"} {
		if err := os.Symlink(to, filepath.Join(volume, link)); err != nil {
			t.Fatal(err)
		}
	}
	m := mounts{{"/etc/app", volume}, {"/etc/file", filepath.Join(outside, "kubeconfig")}}
	for value, counts := range map[string]bool{
		"/etc/app/own": true, "/etc/app/later": true, "/etc/app/in": true, "/etc/app/a/../own": true, "/etc/file": true,
		"/etc/app/own:/etc/app/in":                 true,
		"../../../../../kubeconfig":                false,
		"kubeconfig":                               false,
		"/etc/app/../../kubeconfig":                false,
		"/etc/app/out":                             false,
		"/etc/app/up/kubeconfig":                   false,
		"/etc/application":                         false,
		filepath.Join(outside, "kubeconfig"):       false,
		"/etc/app/own:../../../../../kubeconfig":   false,
		"/etc/app/own::" + outside + "/kubeconfig": false,
		"": false,
	} {
		events := []string{}
		c := &container{spec: &corev1.Container{Name: "c"}, pod: &Pod{cfg: PodConfig{Event: func(_, reason, _, _ string) {
			events = append(events, reason)
		}}}}
		left := c.checkKubeconfig(m, []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "KUBECONFIG", Value: value}})
		if (len(left) == 2) != counts || left[0].Name != "A" || (len(events) == 0) != counts {
			t.Errorf("KUBECONFIG=%s: %v, Events %v", value, left, events)
		}
	}
}

// TestWorkingDirOfProcess checks that no folder above the working directory of a process is the landscape's, and that the
// directory is removed with the Pod, the Runner, and after a kill by the next Runner.
func TestWorkingDirOfProcess(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := newWorld(t, "pwd -P; echo > file; exit 0")
	p := w.run(newPod("p", corev1.RestartPolicyNever))
	<-p.Done()
	dir := strings.TrimSpace(logOf(t, p, false))
	for at := dir; at != "/"; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, podsFolder)); err == nil {
			t.Errorf("the working directory is %s, below the Runner's %s", dir, at)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
		t.Errorf("the file is not in the working directory: %v", err)
	}
	gone := func(what, dir string) {
		t.Helper()
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s is still there: %v", what, dir, err)
		}
	}
	if err := p.Remove(); err != nil {
		t.Fatal(err)
	}
	gone("after the Pod", dir)
	startWorld(t, w.cfg.Dir, "/bin/true")
	gone("after a kill", w.work)
	w = newWorld(t, "exit 0")
	<-w.run(newPod("p", corev1.RestartPolicyNever)).Done()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	gone("after the Runner", w.work)
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
		"LUA_INIT", "DOTNET_STARTUP_HOOKS", "RUBYOPT", "RUBYLIB", "GEM_PATH", "BUNDLE_GEMFILE", "MONO_PATH", "MONO_CONFIG",
		"CORECLR_PROFILER_PATH", "COR_PROFILER_PATH", "COMPlus_EnableDiagnostics", "ASPNETCORE_HOSTINGSTARTUPASSEMBLIES",
		"JULIA_LOAD_PATH", "JULIA_DEPOT_PATH", "R_PROFILE_USER", "R_LIBS", "GIO_MODULE_DIR", "GIO_EXTRA_MODULES", "GTK_MODULES",
		"GST_PLUGIN_PATH", "QT_PLUGIN_PATH", "AWKPATH", "AWKLIBPATH", "SHELLOPTS", "BASHOPTS", "BASH_LOADABLES_PATH",
		"PROMPT_COMMAND", "PS4", "JAVA_TOOL_OPTIONS", "JAVA_HOME", "TCL_LIBRARY", "TCLLIBPATH", "OCAMLPATH", "CAML_LD_LIBRARY_PATH",
		"GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "npm_config_node_options", "LESSOPEN"} {
		if !isReserved(name) {
			t.Errorf("%s is taken from the Pod", name)
		}
	}
	for _, name := range []string{"KUBECONFIG", "LEADER", "POD_NAME", "HTTP_PROXY", "PATHS", "JAVA_OPTS", "NODE_ENV",
		"ASPNETCORE_URLS", "GIT_COMMIT", "RUST_LOG", "RUN_AS", "GOMAXPROCS", "PS", "ENVIRONMENT"} {
		if isReserved(name) {
			t.Errorf("%s is not taken from the Pod", name)
		}
	}
}
