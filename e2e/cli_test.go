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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestUpDownStatusReset goes through the life of a landscape as a user does.
func TestUpDownStatusReset(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "landscape")
	if r := gardenlite(t, dir, "status"); r.Code != 3 || !strings.Contains(r.Stderr, "gardenlite up") {
		t.Errorf("status of nothing: exit status %d, %s", r.Code, r.Stderr)
	}
	if r := gardenlite(t, dir, "kubeconfig"); r.Code != 3 {
		t.Errorf("kubeconfig of nothing: exit status %d, %s", r.Code, r.Stderr)
	}
	gardenlite(t, dir, "down").OK(t).Shows(t, "not running")

	stopsWhileStarting(t, dir)
	startsAtOnce(t, dir)
	gardenlite(t, dir, "down").OK(t)
	up(t, dir).OK(t).Shows(t, "https://127.0.0.1:", "export KUBECONFIG=")
	first := statusOf(t, dir)
	if first.State != "Ready" {
		t.Errorf("state %s", first.State)
	}
	up(t, dir).OK(t).Shows(t, "running already")
	if r := gardenlite(t, dir, "up", "-d", "--seeds", "2"); r.Code != 1 || !strings.Contains(r.Stderr, "--seeds is 1, not 2") {
		t.Errorf("up with another flag: exit status %d, %s", r.Code, r.Stderr)
	}
	if r := gardenlite(t, dir, "token", "create", "--seed", "local"); r.Code != 2 || !strings.Contains(r.Stderr, "--yes") || r.Stdout != "" {
		t.Errorf("a token for a registered seed without a terminal: exit status %d, %s", r.Code, r.Stderr)
	}
	gardenlite(t, dir, "token", "create", "--seed", "local", "--yes").OK(t).Shows(t, first.URL)
	asksOnTerminal(t, dir, first.URL)
	gardenlite(t, dir, "status", "-o", "wide").OK(t).Shows(t, "garden", "Ready", first.URL, "goroutines")
	if r := gardenlite(t, dir, "reset", "--yes"); r.Code != 1 || !strings.Contains(r.Stderr, "gardenlite down") {
		t.Errorf("reset of a running landscape: exit status %d, %s", r.Code, r.Stderr)
	}
	kc := command(t, "", kubectlBinary, "--kubeconfig", first.Kubeconfig, "create", "namespace", "stays").OK(t)
	kc.Shows(t, "created")

	gardenlite(t, dir, "down").OK(t).Shows(t, "stopped")
	own := filepath.Join(t.TempDir(), "own")
	ownKubeconfig := func(program string, args ...string) result {
		return command(t, "", "env", append([]string{"KUBECONFIG=" + own, program}, args...)...)
	}
	ownKubeconfig(binary, "up", "-dv", "--kubeconfig-context", "--data-dir", dir).OK(t) // on the port that was chosen
	second := statusOf(t, dir)
	if second.URL != first.URL {
		t.Errorf("after a restart at %s, before at %s", second.URL, first.URL)
	}
	command(t, "", kubectlBinary, "--kubeconfig", first.Kubeconfig, "get", "namespace", "stays").OK(t)
	checkNothingRewritten(t, first.Kubeconfig)

	user := gardenlite(t, dir, "kubeconfig", "--user", "alice@example.com", "--group", "developers").OK(t)
	file := filepath.Join(t.TempDir(), "alice")
	must(t, os.WriteFile(file, []byte(user.Stdout), 0o600))
	command(t, "", kubectlBinary, "--kubeconfig", file, "auth", "whoami").OK(t).Shows(t, "alice@example.com", "developers")
	if r := command(t, "", kubectlBinary, "--kubeconfig", file, "get", "secrets", "-A"); r.Code == 0 {
		t.Error("a user without rights lists secrets")
	}
	command(t, "", kubectlBinary, "--kubeconfig", file, "get", "cloudprofiles").OK(t)

	ownKubeconfig(kubectlBinary, "get", "namespace", "stays").OK(t)
	gardenlite(t, dir, "down").OK(t)
	ownKubeconfig(binary, "reset", "--yes", "--data-dir", dir).OK(t)
	if r := ownKubeconfig(kubectlBinary, "config", "view"); strings.Contains(r.OK(t).Stdout, "gardenlite-") {
		t.Errorf("after reset, the user's kubeconfig has %s", r.Stdout)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("after reset: %v", err)
	}
	gardenlite(t, dir, "reset", "--yes").OK(t)
}

// checkNothingRewritten checks that a restart does not update the default objects of garden and seed, which have not changed.
func checkNothingRewritten(t *testing.T, kubeconfig string) {
	t.Helper()
	metrics := command(t, "", kubectlBinary, "--kubeconfig", kubeconfig, "get", "--raw", "/metrics").OK(t)
	update := regexp.MustCompile(`(?m)^apiserver_request_total\{.*` +
		`group="(admissionregistration|apiextensions|rbac\.authorization|scheduling)\.k8s\.io".*verb="PUT".*$`)
	if found := update.FindAllString(metrics.Stdout, -1); len(found) > 0 {
		t.Errorf("a restart updates objects:\n%s", strings.Join(found, "\n"))
	}
}

// asksOnTerminal: on a terminal, a token for a registered seed is created only after a confirmation.
func asksOnTerminal(t *testing.T, dir, url string) {
	t.Helper()
	script, err := exec.LookPath("script")
	if err != nil || runtime.GOOS != "linux" {
		return // there is no terminal to be had
	}
	line := fmt.Sprintf("'%s' token create --seed local --data-dir '%s'", binary, dir)
	for answer, code := range map[string]int{"n\n": 1, "y\n": 0} {
		r := command(t, answer, script, "-qec", line, "/dev/null")
		if r.Code != code || !strings.Contains(r.Stdout, `Seed "local" is registered`) || strings.Contains(r.Stdout, url) != (code == 0) {
			t.Errorf("after the answer %q: exit status %d, %s", answer, r.Code, r.Stdout)
		}
	}
}

// TestUpFromFile takes flags from a file; those of the command line take precedence.
func TestUpFromFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	sample, err := os.ReadFile("../manifests/samples/shoot.yaml")
	must(t, err)
	onSeed := bytes.Replace(sample, []byte("\nspec:\n"), []byte("\nspec:\n  seedName: local\n"), 1)
	must(t, os.WriteFile(filepath.Join(folder, "manifests.yaml"),
		append([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: from-file}\n---\n"), onSeed...), 0o600))
	file, dir := filepath.Join(folder, "landscape.yml"), filepath.Join(folder, "state")
	must(t, os.WriteFile(file, []byte("name: filed\nport: 1\ndatastore: memory\ncontrollers: ['*', -token-cleaner-controller]\n"+
		"ready-timeout: 2m\nbastion-time-to-live: 30m\nbastion-max-lifetime: 12h\ndata-dir: state\napply: [manifests.yaml]\n"), 0o600))
	defer func() { gardenlite(t, dir, "down").OK(t) }()
	command(t, "", binary, "up", "-d", "-f", file, "--port", "0").OK(t)
	for _, object := range []string{"namespace/from-file", "-n=garden-dev shoot/sample"} {
		args := append([]string{"--kubeconfig", filepath.Join(dir, "kubeconfig"), "get"}, strings.Fields(object)...)
		command(t, "", kubectlBinary, args...).OK(t)
	}
	gardenlite(t, dir, "status", "--name", "filed").OK(t).Shows(t, "filed")
}

func TestMergeKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", file)
	gardenlite(t, suite.DataDir(), "kubeconfig", "--merge", "--name", os.Getenv("GARDENLITE_NAME")).OK(t)
	command(t, "", kubectlBinary, "--kubeconfig", file, "config", "current-context").OK(t).Shows(t, "gardenlite-")
	command(t, "", kubectlBinary, "--kubeconfig", file, "get", "seeds").OK(t)
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %s", info.Mode())
	}
}

// TestClearErrors provokes errors: the exit status is 2 for wrong usage and otherwise 1, and the message says what
// to do.
func TestClearErrors(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	taken := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)

	notADirectory := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(notADirectory, nil, 0o600))
	garbage := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(garbage, "data", "garden"), 0o700))
	must(t, os.WriteFile(filepath.Join(garbage, "data", "garden", "state.db"), []byte("this is no database"), 0o600))
	must(t, os.WriteFile(filepath.Join(garbage, statedir.LockFile), nil, 0o600)) // by which a landscape's directory is known

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
		{"unknown command", []string{"nonsense"}, 2, "unknown command"},
		{"arguments", []string{"up", "now"}, 2, "now"},
		{"name", []string{"up", "--name", "Not A Name"}, 2, "--name"},
		{"port", []string{"up", "--port", "70000"}, 2, "between 1 and 65535"},
		{"address", []string{"up", "--bind-address", "localhost"}, 2, "--bind-address"},
		{"output", []string{"status", "-o", "xml"}, 2, "one of"},
		{"datastore's form", []string{"up", "--datastore", "mongodb://x"}, 2, "--datastore"},
		{"apply", []string{"up", "--apply", "/does/not/exist"}, 2, "--apply"},
		{"controllers", []string{"up", "--controllers", "nonsense"}, 2, "is no controller"},
		{"bastions too short", []string{"up", "--bastion-time-to-live", "9s"}, 2,
			"--bastion-time-to-live 9s: whole seconds, between 10s and 24h0m0s"},
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
		{"exec with a name", []string{"exec", "--name", "x", "--", "true"}, 2, "--name"},
		{"exec with half an image", []string{"exec", "--run-image", "x", "--", "true"}, 2, "REFERENCE=PROGRAM"},
		{"exec of a bare garden with seeds", []string{"exec", "--bare", "--seeds", "1", "--", "true"}, 2, "--bare has none"},
		{"exec with a plugin that is not there",
			[]string{"exec", "--disable-admission-plugins", "ShootDSN", "--", "true"}, 2, `there is no plugin "ShootDSN"`},
		{"exec of nothing", []string{"exec", "--", "no-such-program"}, 127, "command not found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args, dir := test.args, filepath.Join(t.TempDir(), "new")
			if !strings.Contains(strings.Join(args, " "), "--data-dir") && args[0] != "exec" {
				args = append(args, "--data-dir", dir)
			}
			r := command(t, "", binary, args...)
			if r.Code != test.code || !strings.Contains(r.Stderr, test.says) {
				t.Errorf("exit status %d, expected %d; %q should be in: %s%s", r.Code, test.code, test.says, r.Stdout, r.Stderr)
			}
			if strings.Contains(r.Stdout+r.Stderr, "pa55word") {
				t.Error("the datastore's password is printed")
			}
			if _, err := os.Stat(filepath.Join(dir, statedir.PKIFolder)); !os.IsNotExist(err) {
				t.Errorf("something had been started by then: %v", err)
			}
		})
	}
}

func TestVersionAndCompletion(t *testing.T) {
	command(t, "", binary, "version").OK(t).Shows(t, "Gardener API v1.150.0", "Kubernetes v1.36.4")
	var v map[string]string
	must(t, json.Unmarshal([]byte(command(t, "", binary, "version", "-o", "json").OK(t).Stdout), &v))
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		command(t, "", binary, "completion", shell).OK(t).Shows(t, "gardenlite")
	}
	command(t, "", binary, "--version").OK(t).Shows(t, "gardenlite ", v["gardenlite"])
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	other := filepath.Join(state, "gardenlite", "other")
	must(t, errors.Join(os.MkdirAll(other, 0o700), os.WriteFile(filepath.Join(other, statedir.LockFile), nil, 0o600)))
	for line, names := range map[string][]string{
		"status -o": {"json", "wide"}, "status --name": {"other"}, "up --controllers": {"bastion", "-bastion"},
		"shoot create x --kubernetes-version": {"1.36.0"},
	} {
		args := append(strings.Fields("__complete --data-dir "+suite.DataDir()+" "+line), "")
		for _, name := range names {
			eventually(t, waitTimeout, func(context.Context) error { // a shell waits two seconds for names, and then shows none
				if shown := strings.Split(command(t, "", binary, args...).OK(t).Stdout, "\n"); !slices.Contains(shown, name) {
					return fmt.Errorf("%s is not completed to %q: %q", line, name, shown)
				}
				return nil
			})
		}
	}
}

func TestExecPassesStatusAndCleansUp(t *testing.T) {
	t.Parallel()
	r := command(t, "", binary, "exec", "--seeds", "0", "--", "sh", "-c",
		`echo "$GARDENLITE_DATA_DIR"; test -f "$KUBECONFIG" && kill -TERM $$`)
	if r.Code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d of a command that a signal ended", r.Code)
	}
	if dir := strings.TrimSpace(r.Stdout); dir == "" {
		t.Error("no directory printed")
	} else if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", dir)
	}
}

// TestExecBare: a garden has only what gardener-apiserver creates, no controller runs, and plugins are as they are asked for.
func TestExecBare(t *testing.T) {
	t.Parallel()
	project := `printf '{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: x}}' | "$0" create -f -`
	r := command(t, "", binary, "exec", "--bare", "--enable-admission-plugins", "NamespaceAutoProvision", "--", "sh", "-c", project+`
		"$0" get namespaces,projects -o name; "$0" -n new create configmap a; "$0" delete project x --wait=false`, kubectlBinary)
	if r.Code == 0 || strings.Contains(r.Stdout, "namespace/garden\n") ||
		!strings.Contains(r.Stdout, "namespace/gardener-system-seed-lease") ||
		!strings.Contains(r.Stdout, "configmap/a created") || !strings.Contains(r.Stderr, "confirmation.gardener.cloud/deletion") {
		t.Errorf("exit status %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	command(t, "", binary, "exec", "--bare", "--disable-admission-plugins", "DeletionConfirmation", "--", "sh", "-c",
		"set -e; "+project+`; "$0" delete project x --wait=false`, kubectlBinary).OK(t)
}

// TestExecKeepsLog: the log of a landscape is kept if its command fails, and nothing otherwise. A container runs as a process.
func TestExecKeepsLog(t *testing.T) {
	t.Parallel()
	temporary, program := t.TempDir(), filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\ntouch "+program+".ran\nexec sleep 600\n"), 0o700))
	run := func(script string) result {
		return command(t, "", "env", "TMPDIR="+temporary, binary, "exec", "--seeds", "0", "--keep",
			"--run-image", "example.com/app="+program, "--", "sh", "-c", script, "sh", kubectlBinary, program+".ran")
	}
	kept := func() []string {
		logs, err := filepath.Glob(filepath.Join(temporary, "*"))
		must(t, err)
		return logs
	}
	run(`"$1" create deployment app --image example.com/app:v1 || exit 1
		for n in $(seq 600); do test -e "$2" && exit 0; sleep 0.1; done; exit 1`).OK(t)
	if logs := kept(); len(logs) > 0 {
		t.Errorf("left are %v", logs)
	}
	r := run("exit 7")
	if logs := kept(); r.Code != 7 || len(logs) != 1 || !strings.Contains(r.Stderr, "the log is kept in "+logs[0]) ||
		!strings.Contains(r.Stderr, "\ntime=") {
		t.Errorf("exit status %d, left are %v: %s", r.Code, logs, r.Stderr)
	}
}

// TestExecInterrupted: each interrupt that reaches exec alone is passed on, and the command decides what it does.
func TestExecInterrupted(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(binary, "exec", "--seeds", "0", "--", "sh", "-c",
		`trap 'n=$((n+1)); echo $n > "$0"; test $n -lt 3 || exit 5' INT; n=0; echo 0 > "$0"; while :; do sleep 0.1; done`, out)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // not in the foreground of a terminal
	must(t, cmd.Start())
	for _, count := range []string{"0", "1", "2"} {
		eventually(t, waitTimeout, func(context.Context) error {
			if data, err := os.ReadFile(out); err != nil || strings.TrimSpace(string(data)) != count {
				return fmt.Errorf("the command has seen %q interrupts, not %s: %v", data, count, err)
			}
			return nil
		})
		must(t, cmd.Process.Signal(os.Interrupt))
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("exit status %d, expected the command's", cmd.ProcessState.ExitCode())
	}
}

// TestExecKilled kills exec itself; the command and the directory must go all the same.
func TestExecKilled(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(binary, "exec", "--", "sh", "-c", `echo "$GARDENLITE_DATA_DIR $$" > "$0.tmp"; mv "$0.tmp" "$0"; exec sleep 600`, out)
	must(t, cmd.Start())
	var dir string
	var pid int
	eventually(t, waitTimeout, func(context.Context) error {
		data, err := os.ReadFile(out)
		if err == nil {
			_, err = fmt.Sscan(string(data), &dir, &pid)
		}
		return err
	})
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventually(t, waitTimeout, func(context.Context) error {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("%s is still there", dir)
		}
		if err := syscall.Kill(pid, 0); err == nil {
			return fmt.Errorf("the command, process %d, still runs", pid)
		}
		return nil
	})
}

// startsAtOnce starts one landscape several times at once, while its status is requested all the time: one process
// holds it, and every command names that process.
func startsAtOnce(t *testing.T, dir string) {
	t.Helper()
	ended := make(chan struct{})
	var asking, starting sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				if r := gardenlite(t, dir, "status"); r.Code != 0 && r.Code != 3 {
					t.Errorf("status: %+v", r)
				}
			}
		}
	})
	results := make([]result, 3)
	for i := range results {
		starting.Go(func() { results[i] = up(t, dir) })
	}
	starting.Wait()
	close(ended)
	asking.Wait()
	process := fmt.Sprintf("process %d)", statusOf(t, dir).PID)
	for _, r := range results {
		if r.Code != 0 || !strings.Contains(r.Stdout+r.Stderr, process) {
			t.Errorf("%s has it: %+v", process, r)
		}
	}
}

// stopsWhileStarting ends a landscape that is not ready yet.
func stopsWhileStarting(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command(binary, "up", "--port", "0", "--data-dir", dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, waitTimeout, func(context.Context) error {
		_, err := os.Stat(filepath.Join(dir, "run.json"))
		return err
	})
	if r := gardenlite(t, dir, "shoot", "list"); r.Code != 3 || !strings.Contains(r.Stderr, "is still starting: wait with") {
		t.Errorf("a command while it starts: %+v", r)
	}
	gardenlite(t, dir, "down").OK(t).Shows(t, "has stopped")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 ||
		!strings.Contains(said.String(), `Error: it was stopped with "gardenlite down" before it was ready`) {
		t.Errorf("%v\n%s", err, said.String())
	}
}
