// Package suite has what the packages of end-to-end tests share: the landscape in which all tests of a package run,
// the programs, and requests as a given user. It imports nothing of the product.
package suite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// binaryEnv names the binary under test. Without it the suite builds one.
const binaryEnv = "GARDENLITE_BINARY"

// insideEnv has the name of the test program that already runs in its landscape.
const insideEnv = "GARDENLITE_E2E_PROGRAM"

// Timeout is how long tests wait for something to happen: several landscapes may share a busy machine. It is no
// limit for the product, and a test that succeeds never waits for it.
const Timeout = 10 * time.Minute

var (
	// Root is the root folder of the repository.
	Root = findRoot()
	// Binary is the program under test.
	Binary = cmp.Or(os.Getenv(binaryEnv), filepath.Join(Root, "bin", "gardenlite"))
	// Kubectl is the kubectl that the tests run.
	Kubectl = filepath.Join(Root, "bin", "kubectl")
)

func findRoot() string {
	for dir, _ := os.Getwd(); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "Makefile")); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}

// Enter runs the test program in a landscape of its own, which "gardenlite exec" starts with the flags given. Outside of
// the landscape it does not return: it starts the program again inside and exits with its status. Inside it returns the
// administrator's kubeconfig, as a file and as a configuration.
func Enter(flags ...string) (kubeconfig string, config *rest.Config) {
	self, err := os.Executable()
	if err != nil {
		exit(err)
	}
	if os.Getenv(insideEnv) != self {
		Build()
		args := append(append([]string{"exec"}, flags...), "--", self)
		command := exec.Command(Binary, append(args, os.Args[1:]...)...)
		command.Env = append(os.Environ(), insideEnv+"="+self)
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
		exit(command.Run())
	}
	kubeconfig = os.Getenv("KUBECONFIG")
	if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		exit(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	return kubeconfig, config
}

// Build makes the programs, unless the environment names the binary. "go test ./e2e/..." runs several packages at once:
// one of them builds, the others wait.
func Build() {
	if os.Getenv(binaryEnv) != "" {
		return
	}
	lock, err := os.Open(filepath.Join(Root, "Makefile"))
	if err != nil {
		exit(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		exit(err)
	}
	command := exec.Command("make", "-C", Root, "build", "bin/kubectl")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		exit(err)
	}
}

// exit ends the program with the status of a command that has failed, or 1 for any other error.
func exit(err error) {
	var failed *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &failed):
		os.Exit(failed.ExitCode())
	}
	fmt.Fprintln(os.Stderr, "e2e:", err)
	os.Exit(1)
}

// Run runs the tests of a package. It also fails if a request of a component of their shared landscape was
// forbidden.
func Run(m *testing.M) int {
	code := m.Run()
	forbidden, err := Forbidden(DataDir())
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	for component, requests := range forbidden {
		fmt.Fprintf(os.Stderr, "e2e: %d requests of %s were forbidden while the tests ran\n", requests, component)
		code = max(code, 1)
	}
	return code
}

// Forbidden returns how many requests of a landscape's components were forbidden since its process started, by
// component. It can be called after the end of a test, too.
func Forbidden(dir string) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, Binary, "status", "--data-dir", dir, "-o", "json").Output()
	var status struct {
		Components []struct {
			Name      string
			Forbidden int
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &status)
	}
	if err == nil && len(status.Components) == 0 {
		err = errors.New("there are no components")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the status of the landscape in %s: %w", dir, err)
	}
	forbidden := map[string]int{}
	for _, c := range status.Components {
		if c.Forbidden > 0 {
			forbidden[c.Name] = c.Forbidden
		}
	}
	return forbidden, nil
}

// DataDir returns the state directory of the landscape in which the tests of the package run.
func DataDir() string { return os.Getenv("GARDENLITE_DATA_DIR") }

// Must fails the test if there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Result is the output of a program, and its exit status.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Command runs a program.
func Command(t *testing.T, stdin, program string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("%s %v: %v", filepath.Base(program), args, err)
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Gardenlite runs the binary for the landscape in a directory.
func Gardenlite(t *testing.T, dir string, args ...string) Result {
	t.Helper()
	return Command(t, "", Binary, append(args, "--data-dir", dir)...)
}

// OK fails the test unless the program has succeeded.
func (r Result) OK(t *testing.T) Result {
	t.Helper()
	if r.Code != 0 {
		t.Fatalf("exit status %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// Shows expects words in the standard output of the program.
func (r Result) Shows(t *testing.T, words ...string) Result {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(r.Stdout, word) {
			t.Errorf("%q is not in:\n%s%s", word, r.Stdout, r.Stderr)
		}
	}
	return r
}

// Up starts a landscape in the background, which is stopped when the test ends.
func Up(t *testing.T, dir string, flags ...string) Result {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(EndOfLog(dir))
		}
		_ = exec.Command(Binary, "down", "--data-dir", dir).Run() // the test's context has ended by now
	})
	return Gardenlite(t, dir, append([]string{"up", "-d", "--port", "0", "--ready-timeout", Timeout.String()}, flags...)...)
}

// EndOfLog returns the end of the landscape's log.
func EndOfLog(dir string) string {
	data, _ := os.ReadFile(filepath.Join(dir, "gardenlite.log"))
	lines := strings.Split(string(data), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// Status is the output of "gardenlite status".
type Status struct {
	PID        int    `json:"pid"`
	State      string `json:"state"`
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
}

// StatusOf returns the status of the landscape in a directory.
func StatusOf(t *testing.T, dir string) (s Status) {
	t.Helper()
	Must(t, json.Unmarshal([]byte(Gardenlite(t, dir, "status", "-o", "json").OK(t).Stdout), &s))
	return s
}
