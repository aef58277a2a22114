//go:build soak

package smoke

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// TestReleaseFirstSteps runs the README's First steps with the binary of a release, which finds nothing else in its
// folder, and nothing in the user's home directory.
func TestReleaseFirstSteps(t *testing.T) {
	pattern := filepath.Join(suite.Root, "dist", "gardenlite_*_linux_"+runtime.GOARCH+".tar.gz")
	archives, err := filepath.Glob(pattern)
	suite.Must(t, err)
	if len(archives) != 1 {
		t.Fatalf("%s: %d archives, want one: run \"make release-check\" first", pattern, len(archives))
	}
	dir, home := t.TempDir(), t.TempDir()
	suite.Command(t, "", "tar", "-xzf", archives[0], "-C", dir, "gardenlite").OK(t)
	run := []string{"-i", "-C", dir, "HOME=" + home, "PATH=" + dir + ":" + filepath.Dir(suite.Kubectl) + ":/usr/bin:/bin"}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(suite.EndOfLog(filepath.Join(home, ".local", "state", "gardenlite", "default")))
		}
		_ = exec.Command("env", append(run, "gardenlite", "down")...).Run()
	})
	done := suite.Command(t, "", "env", append(run, "bash", "-eux", "-o", "pipefail", "-c", firstSteps(t))...).OK(t)
	done.Shows(t, "my-shoot is ready", "shoot--dev--my-shoot-worker", "my-shoot is gone", "has stopped")
	left, err := os.ReadDir(dir)
	suite.Must(t, err)
	if len(left) != 2 || left[0].Name() != "gardenlite" || left[1].Name() != "my-shoot.kubeconfig" {
		t.Errorf("the folder has %v, want the binary and the kubeconfig of the Shoot", left)
	}
}

// firstSteps returns the commands of the README's First steps. The port is a free one: a landscape may be running
// already.
func firstSteps(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(suite.Root, "README.md"))
	suite.Must(t, err)
	_, section, _ := strings.Cut(string(readme), "\n## First steps\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for line := range strings.Lines(section) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			commands = append(commands, command)
		}
	}
	steps := strings.Join(commands, "")
	if strings.Count(steps, "gardenlite up -d\n") != 1 || len(commands) < 5 {
		t.Fatalf("the README's First steps are not what they were: %s", steps)
	}
	return strings.Replace(steps, "gardenlite up -d\n", "gardenlite up -d --port 0\n", 1)
}
