package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// gardenlite runs the binary with a data directory of its own.
func gardenlite(t *testing.T, dir string, args ...string) result {
	t.Helper()
	return command(t, "", binary, append(args, "--data-dir", dir)...)
}

// up starts a landscape in the background, which is stopped when the test ends.
func up(t *testing.T, dir string, args ...string) result {
	t.Helper()
	t.Cleanup(func() {
		// The test's context has ended by now.
		_ = exec.Command(binary, "down", "--data-dir", dir).Run()
	})
	return gardenlite(t, dir, append([]string{"up", "-d", "--port", "0"}, args...)...)
}

type statusOutput struct {
	PID        int    `json:"pid"`
	State      string `json:"state"`
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
}

func statusOf(t *testing.T, dir string) (s statusOutput) {
	t.Helper()
	must(t, json.Unmarshal([]byte(gardenlite(t, dir, "status", "-o", "json").ok(t).stdout), &s))
	return s
}

// TestUpDownStatusReset goes through the life of a landscape as a user does.
func TestUpDownStatusReset(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "landscape")
	if r := gardenlite(t, dir, "status"); r.code != 3 || !strings.Contains(r.stderr, "gardenlite up") {
		t.Errorf("status of nothing: exit status %d, %s", r.code, r.stderr)
	}
	if r := gardenlite(t, dir, "kubeconfig"); r.code != 3 {
		t.Errorf("kubeconfig of nothing: exit status %d, %s", r.code, r.stderr)
	}
	gardenlite(t, dir, "down").ok(t).shows(t, "not running")

	up(t, dir).ok(t).shows(t, "https://127.0.0.1:", "export KUBECONFIG=")
	first := statusOf(t, dir)
	if first.State != "Ready" {
		t.Errorf("state %s", first.State)
	}
	up(t, dir).ok(t).shows(t, "running already")
	gardenlite(t, dir, "status", "-o", "wide").ok(t).shows(t, "garden", "Ready", first.URL, "goroutines")
	if r := gardenlite(t, dir, "reset", "--yes"); r.code != 1 || !strings.Contains(r.stderr, "gardenlite down") {
		t.Errorf("reset of a running landscape: exit status %d, %s", r.code, r.stderr)
	}
	kc := command(t, "", kubectlBinary, "--kubeconfig", first.Kubeconfig, "create", "namespace", "stays").ok(t)
	kc.shows(t, "created")

	gardenlite(t, dir, "down").ok(t).shows(t, "stopped")
	up(t, dir).ok(t)
	second := statusOf(t, dir)
	if second.URL != first.URL {
		t.Errorf("after a restart at %s, before at %s", second.URL, first.URL)
	}
	command(t, "", kubectlBinary, "--kubeconfig", first.Kubeconfig, "get", "namespace", "stays").ok(t)

	user := gardenlite(t, dir, "kubeconfig", "--user", "alice@example.com", "--group", "developers").ok(t)
	file := filepath.Join(t.TempDir(), "alice")
	must(t, os.WriteFile(file, []byte(user.stdout), 0o600))
	command(t, "", kubectlBinary, "--kubeconfig", file, "auth", "whoami").ok(t).shows(t, "alice@example.com", "developers")
	if r := command(t, "", kubectlBinary, "--kubeconfig", file, "get", "secrets", "-A"); r.code == 0 {
		t.Error("a user without rights lists secrets")
	}
	command(t, "", kubectlBinary, "--kubeconfig", file, "get", "cloudprofiles").ok(t)

	gardenlite(t, dir, "down").ok(t)
	gardenlite(t, dir, "reset", "--yes").ok(t)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("after reset: %v", err)
	}
}

// TestUpFromFile takes flags from a file, and what the command line says counts more.
func TestUpFromFile(t *testing.T) {
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "namespace.yaml"), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: from-file}\n"), 0o600))
	file, dir := filepath.Join(folder, "landscape.yml"), filepath.Join(folder, "state")
	must(t, os.WriteFile(file, []byte("name: filed\nport: 1\ndatastore: memory\ncontrollers: ['*', -token-cleaner-controller]\nready-timeout: 2m\nbastion-time-to-live: 30m\nbastion-max-lifetime: 12h\ndata-dir: state\napply: [namespace.yaml]\n"), 0o600))
	defer func() { gardenlite(t, dir, "down").ok(t) }()
	command(t, "", binary, "up", "-d", "-f", file, "--port", "0").ok(t)
	command(t, "", kubectlBinary, "--kubeconfig", filepath.Join(dir, "kubeconfig"), "get", "namespace", "from-file").ok(t)
	gardenlite(t, dir, "status", "--name", "filed").ok(t).shows(t, "filed")
}

func TestMergeKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", file)
	gardenlite(t, os.Getenv("GARDENLITE_DATA_DIR"), "kubeconfig", "--merge", "--name", os.Getenv("GARDENLITE_NAME")).ok(t)
	command(t, "", kubectlBinary, "--kubeconfig", file, "config", "current-context").ok(t).shows(t, "gardenlite-")
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %s", info.Mode())
	}
}

// TestClearErrors makes what can go wrong go wrong: exit status 2 for wrong usage, else 1, and words that say what to do.
func TestClearErrors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	taken := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)

	notADirectory := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(notADirectory, nil, 0o600))
	garbage := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(garbage, "data", "garden"), 0o700))
	must(t, os.WriteFile(filepath.Join(garbage, "data", "garden", "state.db"), []byte("this is no database"), 0o600))

	file := filepath.Join(t.TempDir(), "landscape.yaml")
	must(t, os.WriteFile(file, []byte("port: many\nports: 7"), 0o600))

	for _, test := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no file", []string{"up", "-f", file + ".yml"}, 2, "no such file"},
		{"a key that is no flag", []string{"up", "-f", file}, 2, `unknown key "ports"`},
		{"a value that does not fit", []string{"up", "-f", file}, 2, "landscape.yaml: port: "},
		{"unknown flag", []string{"up", "--nonsense"}, 2, "unknown flag"},
		{"unknown command", []string{"nonsense"}, 1, "unknown command"},
		{"arguments", []string{"up", "now"}, 2, "now"},
		{"name", []string{"up", "--name", "Not A Name"}, 2, "--name"},
		{"port", []string{"up", "--port", "70000"}, 2, "between 1 and 65535"},
		{"address", []string{"up", "--bind-address", "localhost"}, 2, "--bind-address"},
		{"output", []string{"status", "-o", "xml"}, 2, "one of"},
		{"datastore's form", []string{"up", "--datastore", "mongodb://x"}, 2, "--datastore"},
		{"apply", []string{"up", "--apply", "/does/not/exist"}, 2, "--apply"},
		{"controllers", []string{"up", "--controllers", "nonsense"}, 2, "is no controller"},
		{"bastions too short", []string{"up", "--bastion-time-to-live", "9s"}, 2, "--bastion-time-to-live 9s: whole seconds, between 10s and 24h0m0s"},
		{"bastions too long", []string{"up", "--bastion-max-lifetime", "721h"}, 2, "--bastion-max-lifetime"},
		{"datastore unreachable", []string{"up", "--port", "0", "--datastore", "postgres://me:pa55word@127.0.0.1:1/db"}, 1, "not reachable"},
		{"port taken", []string{"up", "--port", taken}, 1, "another program listens"},
		{"not an address of this machine", []string{"up", "--port", "0", "--bind-address", "192.0.2.1"}, 1, "no address of this machine"},
		{"directory not writable", []string{"up", "--port", "0", "--data-dir", filepath.Join(notADirectory, "below")}, 1, "--data-dir"},
		{"datastore corrupt", []string{"up", "--port", "0", "--data-dir", garbage}, 1, "gardenlite reset"},
		{"no terminal", []string{"reset", "--data-dir", garbage}, 2, "--yes"},
		{"not a landscape", []string{"reset", "--yes", "--data-dir", garbage + "/data"}, 1, "nothing was deleted"},
		{"group without user", []string{"kubeconfig", "--group", "x"}, 2, "--user"},
		{"exec without command", []string{"exec"}, 2, "arg"},
		{"exec of nothing", []string{"exec", "--", "no-such-program"}, 127, "command not found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := test.args
			if !strings.Contains(strings.Join(args, " "), "--data-dir") && args[0] != "exec" {
				args = append(args, "--data-dir", t.TempDir())
			}
			r := command(t, "", binary, args...)
			if r.code != test.code || !strings.Contains(r.stderr, test.says) {
				t.Errorf("exit status %d, expected %d; %q should be in: %s%s", r.code, test.code, test.says, r.stdout, r.stderr)
			}
			if strings.Contains(r.stdout+r.stderr, "pa55word") {
				t.Error("the datastore's password is printed")
			}
		})
	}
}

func TestVersionAndCompletion(t *testing.T) {
	command(t, "", binary, "version").ok(t).shows(t, "Gardener API v1.149.0", "Kubernetes v1.36.3")
	var v map[string]string
	must(t, json.Unmarshal([]byte(command(t, "", binary, "version", "-o", "json").ok(t).stdout), &v))
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		command(t, "", binary, "completion", shell).ok(t).shows(t, "gardenlite")
	}
	command(t, "", binary, "__complete", "status", "-o", "").ok(t).shows(t, "json", "wide")
}

func TestExecPassesStatusAndCleansUp(t *testing.T) {
	if r := command(t, "", binary, "exec", "--", "sh", "-c", "exit 7"); r.code != 7 {
		t.Errorf("exit status %d, expected 7: %s", r.code, r.stderr)
	}
	r := command(t, "", binary, "exec", "--", "sh", "-c", `echo "$GARDENLITE_DATA_DIR"; test -f "$KUBECONFIG" && kill -TERM $$`)
	if r.code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d of a command that a signal ended", r.code)
	}
	if dir := strings.TrimSpace(r.stdout); dir == "" {
		t.Error("no directory printed")
	} else if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", dir)
	}
}

// TestExecKilled kills exec itself; the command and the directory must go all the same.
func TestExecKilled(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(binary, "exec", "--", "sh", "-c", `echo "$GARDENLITE_DATA_DIR $$" > "$0.tmp"; mv "$0.tmp" "$0"; exec sleep 600`, out)
	must(t, cmd.Start())
	var dir string
	var pid int
	eventually(t, 2*time.Minute, func(context.Context) error {
		data, err := os.ReadFile(out)
		if err == nil {
			_, err = fmt.Sscan(string(data), &dir, &pid)
		}
		return err
	})
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventually(t, 15*time.Second, func(context.Context) error {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("%s is still there", dir)
		}
		if err := syscall.Kill(pid, 0); err == nil {
			return fmt.Errorf("the command, process %d, still runs", pid)
		}
		return nil
	})
}

// TestForegroundEndsOnInterrupt stops a landscape in the foreground as Ctrl-C does.
func TestForegroundEndsOnInterrupt(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(binary, "up", "--port", "0", "--data-dir", dir)
	must(t, cmd.Start())
	eventually(t, 2*time.Minute, func(context.Context) error {
		if r := gardenlite(t, dir, "status", "--wait"); r.code != 0 {
			return fmt.Errorf("%s", r.stderr)
		}
		return nil
	})
	must(t, cmd.Process.Signal(os.Interrupt))
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("not ended after 30 s")
		_ = cmd.Process.Kill()
	}
}

// TestUpAtOnce starts one landscape several times at once, while its status is asked for all the time: one process has it, and
// every command says so.
func TestUpAtOnce(t *testing.T) {
	dir := t.TempDir()
	ended := make(chan struct{})
	var asking, starting sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				if r := gardenlite(t, dir, "status"); r.code != 0 && r.code != 3 {
					t.Errorf("status: %+v", r)
				}
			}
		}
	})
	results := make([]result, 3)
	for i := range results {
		starting.Go(func() { results[i] = up(t, dir, "--seeds", "0") })
	}
	starting.Wait()
	close(ended)
	asking.Wait()
	process := fmt.Sprintf("process %d)", statusOf(t, dir).PID)
	for _, r := range results {
		if r.code != 0 || !strings.Contains(r.stdout+r.stderr, process) {
			t.Errorf("%s has it: %+v", process, r)
		}
	}
}

// TestDownWhileStarting ends a landscape that is not ready yet.
func TestDownWhileStarting(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(binary, "up", "--port", "0", "--data-dir", dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, 30*time.Second, func(context.Context) error {
		_, err := os.Stat(filepath.Join(dir, "run.json"))
		return err
	})
	if r := gardenlite(t, dir, "shoot", "list"); r.code != 3 || !strings.Contains(r.stderr, "is still starting: wait with") {
		t.Errorf("a command while it starts: %+v", r)
	}
	gardenlite(t, dir, "down").ok(t).shows(t, "has stopped")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 ||
		!strings.Contains(said.String(), `Error: it was stopped with "gardenlite down" before it was ready`) {
		t.Errorf("%v\n%s", err, said.String())
	}
	up(t, dir).ok(t)
}
