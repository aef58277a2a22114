// Package pages runs the commands of the README and of the pages in docs as they are written there, each page in an
// empty home directory with the sources beside it.
package pages

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// pageTimeout is how long the commands of a page may take, also on a busy machine.
const pageTimeout = 8 * time.Minute

// wrapper is the gardenlite of the pages. Its landscapes have free ports: one may be running on this machine.
const wrapper = `#!/bin/sh
if [ "$1" = up ]; then shift; set -- up --port 0 "$@"; fi
exec "%s" "$@"
`

// prelude is read by the shell before a page.
const prelude = `
PS4="+ $page:\$LINENO (\${SECONDS}s): "
# until_shown waits until a command that goes on has printed a text.
until_shown() {
  { set +x; } 2>/dev/null
  for _ in $(seq 600); do grep -qF -e "$1" "$2" && break; kill -0 $! 2>/dev/null || break; sleep 0.1; done
  cat "$2"; grep -qF -e "$1" "$2"
  set -x
}
# end_started ends what blocks before have started and that goes on.
end_started() { for job in $(jobs -p); do pkill -P "$job" || true; done; wait || true; }
`

func TestMain(m *testing.M) {
	suite.Build()
	os.Exit(m.Run())
}

// TestPages runs the commands of each page, two pages at a time.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(suite.Root, "docs", "*.md"))
	suite.Must(t, err)
	running := make(chan struct{}, 2)
	for _, file := range append([]string{filepath.Join(suite.Root, "README.md")}, pages...) {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			suite.Must(t, err)
			s, err := newScript(string(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if s.blocks == 0 {
				return
			}
			running <- struct{}{}
			defer func() { <-running }()
			s.run(t, name)
		})
	}
}

// run runs the commands of a page, and stops what they leave running.
func (s *script) run(t *testing.T, name string) {
	home, files := t.TempDir(), t.ArtifactDir()
	write := func(file, text string, mode os.FileMode) string {
		suite.Must(t, os.WriteFile(filepath.Join(files, file), []byte(text), mode))
		return filepath.Join(files, file)
	}
	write("gardenlite", strings.Replace(wrapper, "%s", suite.Binary, 1), 0o700)
	suite.Must(t, os.Symlink(suite.Kubectl, filepath.Join(files, "kubectl")))
	page := write(name, strings.Join(s.lines, "\n"), 0o600)
	env := append(environment(t), "HOME="+home, "TMPDIR="+t.TempDir(), "PATH="+files+":"+os.Getenv("PATH"),
		"page="+name, "BASH_ENV="+write("prelude", prelude, 0o600))
	work := copySources(t)

	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	output, err := os.Create(filepath.Join(files, "output"))
	suite.Must(t, err)
	defer output.Close()
	command := exec.CommandContext(ctx, "bash", "-eux", "-o", "pipefail", page)
	command.Env, command.Dir, command.Stdout, command.Stderr = env, work, output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with what runs in the background
	began := time.Now()
	suite.Must(t, command.Start())
	failed := command.Wait()
	t.Logf("%s took %s", name, time.Since(began).Round(time.Second/10))
	printed, err := os.ReadFile(output.Name())
	suite.Must(t, err)
	log := suite.EndOfLog(filepath.Join(home, ".local", "state", "gardenlite", "default"))
	end(t, command.Process.Pid, env)
	if failed != nil {
		lines := strings.Split(string(printed), "\n")
		last := strings.Join(lines[max(0, len(lines)-40):], "\n")
		t.Errorf("%s: %v after\n%s\nThe log ends with\n%s", name, failed, last, log)
	} else if shown, is := s.missing(string(printed)); is {
		t.Errorf("%s:%d: no line of the output, after those that are shown before, is %s:\n%s",
			name, shown.number, shown.pattern, printed)
	}
}

// end stops the landscapes of a page and what runs in the background.
func end(t *testing.T, group int, env []string) {
	t.Helper()
	down := exec.Command(suite.Binary, "down", "--all")
	down.Env = env
	if out, err := down.CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
	testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
		if err := syscall.Kill(-group, 0); !errors.Is(err, syscall.ESRCH) {
			return errors.New("a command runs on in the background")
		}
		return nil
	})
}

// environment returns the variables of this process, without those that lead to files and landscapes of the user.
func environment(t *testing.T) []string {
	t.Helper()
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return slices.ContainsFunc([]string{"GARDENLITE_", "XDG_", "KUBE", "SSH_", "HOME="},
			func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
	})
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	suite.Must(t, err)
	caches := strings.Fields(string(out))
	return append(env, "GOCACHE="+caches[0], "GOMODCACHE="+caches[1])
}

// copySources returns a folder with what the pages use of a clone.
func copySources(t *testing.T) string {
	t.Helper()
	work := t.TempDir()
	for _, folder := range []string{"examples", "manifests"} {
		suite.Must(t, os.CopyFS(filepath.Join(work, folder), os.DirFS(filepath.Join(suite.Root, folder))))
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(suite.Root, file))
		suite.Must(t, err)
		suite.Must(t, os.WriteFile(filepath.Join(work, file), text, 0o600))
	}
	return work
}
