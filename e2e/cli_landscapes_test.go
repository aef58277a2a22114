package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// TestManyLandscapes: they are listed whether they run or not, stopped all at once, and deleted with their contexts
// in the user's kubeconfig.
func TestManyLandscapes(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("KUBECONFIG", filepath.Join(state, "config"))
	run := func(line string) result { return command(t, "", binary, strings.Fields(line)...) }
	t.Cleanup(func() { // when the test's context has ended
		for _, name := range []string{"a", "b"} {
			_ = exec.Command(binary, "down", "--data-dir", filepath.Join(state, "gardenlite", name)).Run()
		}
	})
	for _, name := range []string{"a", "b"} {
		run("up -d --port 0 --seeds 0 --datastore memory --name " + name).OK(t)
		run("kubeconfig --merge --name " + name).OK(t)
	}
	states := func() map[string]string {
		t.Helper()
		var all []struct {
			Name, State, URL string
			Size             int
		}
		must(t, json.Unmarshal([]byte(run("list -o json").OK(t).Stdout), &all))
		found := map[string]string{}
		for _, l := range all {
			found[l.Name] = l.State
			if l.Size < 4096 || (l.State == "Ready") != strings.HasPrefix(l.URL, "https://127.0.0.1:") {
				t.Errorf("%+v", l)
			}
		}
		return found
	}
	if got := states(); len(got) != 2 || got["a"] != "Ready" || got["b"] != "Ready" {
		t.Errorf("while they run: %v", got)
	}
	if r := run("delete b"); r.Code != 2 || !strings.Contains(r.Stderr, "--yes") {
		t.Errorf("a deletion without a terminal: exit status %d, %s", r.Code, r.Stderr)
	}
	r := run("delete b --yes").OK(t).Shows(t, `"b" has stopped`, `"b" is deleted`)
	if !strings.Contains(r.Stderr, "Removed from your kubeconfig: gardenlite-b.") {
		t.Errorf("the contexts: %s", r.Stderr)
	}
	config, err := os.ReadFile(filepath.Join(state, "config"))
	must(t, err)
	if text := string(config); strings.Contains(text, "gardenlite-b") || !strings.Contains(text, "gardenlite-a") ||
		strings.Contains(text, "current-context: gardenlite-b") {
		t.Errorf("the kubeconfig is\n%s", regexp.MustCompile(`(data|token): \S+`).ReplaceAllString(text, "$1: …"))
	}
	run("down --all").OK(t).Shows(t, `"a" has stopped`)
	run("down --all").OK(t).Shows(t, "No landscape is running.")
	if got := states(); len(got) != 1 || got["a"] != "Stopped" {
		t.Errorf("in the end: %v", got)
	}
	// A landscape that does not run has a log as well.
	run("logs kube-apiserver --name a").OK(t).Shows(t, "cluster=garden")
	run("delete a --yes").OK(t)
	if _, err := os.Stat(filepath.Join(state, "gardenlite", "a")); !os.IsNotExist(err) {
		t.Errorf("after the deletion: %v", err)
	}
}

// TestLogNamesOrigin: each line of the log says which component of which cluster it is from, and logs finds lines by
// both.
func TestLogNamesOrigin(t *testing.T) {
	line := regexp.MustCompile(`^time=\S+ level=`)
	named := regexp.MustCompile(` logger=.* cluster=| cluster=.* logger=`)
	all, without := 0, []string(nil)
	for _, text := range strings.Split(gardenlite(t, suite.DataDir(), "logs").OK(t).Stdout, "\n") {
		if !line.MatchString(text) {
			continue
		}
		if all++; !named.MatchString(text) {
			without = append(without, text)
		}
	}
	if all < 100 || len(without) > all/100 {
		t.Errorf("%d of %d lines do not say where they are from, such as\n%s", len(without), all,
			strings.Join(without[:min(5, len(without))], "\n"))
	}
	for what, want := range map[string]string{"garden": " cluster=garden", "local-2": " cluster=seed-local-2",
		"gardenlet":               `logger="gardenlet `,
		"kube-controller-manager": " logger=kube-controller-manager"} {
		lines := strings.Split(strings.TrimSpace(gardenlite(t, suite.DataDir(), "logs", what).OK(t).Stdout), "\n")
		for _, text := range lines {
			if !strings.Contains(text, want) {
				t.Errorf("logs %s prints %s", what, text)
				break
			}
		}
	}
	if r := gardenlite(t, suite.DataDir(), "logs", "nonsense"); r.Code != 1 ||
		!strings.Contains(r.Stderr, "controller-manager") {
		t.Errorf("logs of nothing: exit status %d, %s", r.Code, r.Stderr)
	}
}
