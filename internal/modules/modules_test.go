package modules_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const path = "github.com/gardenlite/gardenlite"

// TestConsumerNeedsNoReplace makes a module that imports pkg/testenv and replaces nothing but gardenlite itself, which is
// not published in a test.
func TestConsumerNeedsNoReplace(t *testing.T) {
	root := root(t)
	consumer := t.TempDir()
	write(t, filepath.Join(consumer, "go.mod"), fmt.Sprintf(
		"module example.com/consumer\n\ngo 1.26.0\n\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %[2]s\n", path, root))
	write(t, filepath.Join(consumer, "consumer_test.go"), fmt.Sprintf(`package consumer

import (
	"testing"

	%q
)

func TestStart(t *testing.T) { testenv.Start(t) }
`, path+"/pkg/testenv"))

	goCommand(t, consumer, nil, "mod", "tidy")
	goCommand(t, consumer, nil, "vet", ".")
	for _, replace := range replaces(t, consumer) {
		if replace != path {
			t.Errorf("the consumer's go.mod replaces %s", replace)
		}
	}
}

// TestInstall resolves "go install .../cmd/gardenlite@VERSION" from a module proxy: that command refuses a module with
// replace directives.
func TestInstall(t *testing.T) {
	version := module.Version{Path: path, Version: fmt.Sprintf("v0.0.0-%d", time.Now().UnixNano())}
	proxy := filepath.Join(t.TempDir(), "proxy")
	publish(t, proxy, version)
	env := []string{"GOPROXY=file://" + proxy + "," + goEnv(t, "GOPROXY"), "GONOSUMDB=" + path, "GOBIN=" + t.TempDir()}
	t.Cleanup(func() { forget(t, version) })
	goCommand(t, t.TempDir(), env, "install", "-n", path+"/cmd/gardenlite@"+version.Version)
}

// TestNoReplace names a replace directive, for which the other tests only fail.
func TestNoReplace(t *testing.T) {
	for _, replace := range replaces(t, root(t)) {
		t.Errorf("go.mod replaces %s: a module that imports gardenlite would need that directive too", replace)
	}
}

func root(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// replaces returns the paths that the go.mod in a folder replaces.
func replaces(t *testing.T, folder string) (paths []string) {
	t.Helper()
	var parsed struct {
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal([]byte(goCommand(t, folder, nil, "mod", "edit", "-json")), &parsed); err != nil {
		t.Fatal(err)
	}
	for _, replace := range parsed.Replace {
		paths = append(paths, replace.Old.Path)
	}
	return paths
}

// publish adds this module, as it is in the working tree, to a module proxy in a folder.
func publish(t *testing.T, proxy string, version module.Version) {
	t.Helper()
	folder := filepath.Join(proxy, path, "@v")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "list"), version.Version+"\n")
	write(t, filepath.Join(folder, version.Version+".mod"), string(mod))
	write(t, filepath.Join(folder, version.Version+".info"), fmt.Sprintf("{%q:%q}", "Version", version.Version))
	archive, err := os.Create(filepath.Join(folder, version.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.Create(archive, version, sources(t)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// source is a file of the module.
type source struct{ root, path string }

func (s source) Path() string                 { return s.path }
func (s source) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(s.root, s.path)) }
func (s source) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(s.root, s.path)) }

// sources returns the files that a release of the working tree would contain, without the programs that were built
// in it.
func sources(t *testing.T) (files []zip.File) {
	t.Helper()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	list.Dir = root(t)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for _, path := range strings.Fields(string(out)) {
		if file := (source{root(t), path}); exists(file) {
			files = append(files, file)
		}
	}
	return files
}

func exists(file source) bool { _, err := file.Lstat(); return err == nil }

// forget removes the module that a test installed from the module cache.
func forget(t *testing.T, version module.Version) {
	cache := goEnv(t, "GOMODCACHE")
	_ = os.RemoveAll(filepath.Join(cache, version.String()))
	left, _ := filepath.Glob(filepath.Join(cache, "cache", "download", path, "@v", version.Version+".*"))
	for _, file := range left {
		_ = os.Remove(file)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(goCommand(t, ".", nil, "env", name))
}

func goCommand(t *testing.T, folder string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-modcacherw", "GOWORK=off"), env...)
	out, err := cmd.Output()
	if err != nil {
		message := ""
		if exit, ok := err.(*exec.ExitError); ok {
			message = string(exit.Stderr)
		}
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, message)
	}
	return string(out)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
