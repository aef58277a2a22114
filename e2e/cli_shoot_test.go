package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// TestShootCommands goes through the life of a Shoot with the commands for it.
func TestShootCommands(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	run := func(line string) result { return gardenlite(t, suite.DataDir(), strings.Fields(line)...) }
	describe := func() (d struct {
		State, Seed         string
		Ready, Hibernated   bool
		Operation           struct{ Text string }
		Nodes, Bastions     []struct{ Name string }
		Errors, Conditions  []any
		Rotations           []struct{ Name, Phase, Next string }
		KubernetesVersion   string
		NodesError, Message string
	}) {
		t.Helper()
		must(t, json.Unmarshal([]byte(run("shoot describe commanded -o json").OK(t).Stdout), &d))
		return d
	}
	run("shoot create commanded --seed local --wait").OK(t)
	if d := describe(); d.State != "Ready" || len(d.Nodes) != 2 || d.NodesError != "" || len(d.Conditions) < 5 ||
		len(d.Errors) != 0 {
		t.Errorf("after the creation: %+v", d)
	}
	run("shoot describe commanded").OK(t).Shows(t, "Shoot       dev/commanded: Ready", "Create Succeeded",
		"APIServerAvailable", "NODE")
	for flag, want := range map[string]string{"-t=false": "input\n", "-n": ""} {
		r := command(t, "input\n", binary, "ssh", flag, "dev/commanded", "--data-dir", suite.DataDir(), "--", "cat").OK(t)
		if r.Stdout != want {
			t.Errorf("ssh %s prints %q, want %q", flag, r.Stdout, want)
		}
	}
	liveLineFits(t, 80, "shoot hibernate commanded --wait", "Shoot dev/commanded is hibernated.")
	if d := describe(); d.State != "Hibernated" || len(d.Nodes) != 0 {
		t.Errorf("after the hibernation: %+v", d)
	}
	liveLineFits(t, 120, "shoot wake commanded --wait", "Shoot dev/commanded is awake.")
	run("shoot reconcile commanded --wait").OK(t).Shows(t, "is ready")
	run("shoot maintain commanded --wait").OK(t).Shows(t, "is ready")
	if r := run("shoot retry commanded"); r.Code != 1 || !strings.Contains(r.Stderr, "has not failed") {
		t.Errorf("retry without a failure: exit status %d, %s", r.Code, r.Stderr)
	}
	run("shoot migrate commanded --seed local-2 --wait").OK(t).Shows(t, "is on its new seed")
	if d := describe(); d.Seed != "local-2" || d.State != "Ready" || d.Operation.Text != "Restore Succeeded" {
		t.Errorf("after the migration: %+v", d)
	}
	run("rotate ca dev/commanded --wait").OK(t)
	if d := describe(); len(d.Rotations) != 1 || d.Rotations[0].Phase != "Prepared" ||
		!strings.HasPrefix(d.Rotations[0].Next, "gardenlite rotate ca dev/commanded --complete") {
		t.Errorf("during a rotation: %+v", d.Rotations)
	}
	watch := exec.Command(binary, "shoot", "list", "--watch", "--data-dir", suite.DataDir())
	rows, err := watch.StdoutPipe()
	must(t, err)
	must(t, watch.Start())
	t.Cleanup(func() { _ = watch.Process.Kill() })
	s := l.newShootWith(t, "commanded-fails",
		map[string]string{"gardenlite.dev/fail": "always:ERR_CONFIGURATION_PROBLEM no such network"})
	s.lastError(t, "ERR_CONFIGURATION_PROBLEM")
	r := run("shoot describe commanded-fails").OK(t).Shows(t, "Create Failed", "ERR_CONFIGURATION_PROBLEM",
		"no such network")
	if !strings.Contains(r.Stderr, "gardenlite shoot retry") {
		t.Errorf("what to do next: %s", r.Stderr)
	}
	s.patch(t, `{"metadata":{"annotations":{"gardenlite.dev/fail":null}}}`)
	run("shoot retry commanded-fails --wait").OK(t).Shows(t, "is ready")
	for lines := bufio.NewScanner(rows); ; {
		if !lines.Scan() {
			t.Fatal("shoot list --watch ends before it shows the Shoot that fails")
		}
		if strings.HasPrefix(lines.Text(), "dev/commanded-fails ") && strings.Contains(lines.Text(), "Failed") {
			break
		}
	}
	must(t, watch.Process.Signal(os.Interrupt))
	if _, err := io.Copy(io.Discard, rows); err != nil {
		t.Error(err)
	}
	if err := watch.Wait(); watch.ProcessState.ExitCode() != 130 {
		t.Errorf("after Ctrl-C: %v", err)
	}
	for _, name := range []string{"commanded", "commanded-fails"} {
		run("shoot delete --yes --wait " + name).OK(t)
	}
}

// liveLineFits runs a command on a terminal of a width: the line that it redraws never wraps.
func liveLineFits(t *testing.T, columns int, line, says string) {
	t.Helper()
	script, err := exec.LookPath("script")
	if err != nil || runtime.GOOS != "linux" {
		gardenlite(t, suite.DataDir(), strings.Fields(line)...).OK(t)
		return // there is no terminal to be had
	}
	line = fmt.Sprintf("stty cols %d; TERM=xterm '%s' %s --data-dir '%s'", columns, binary, line, suite.DataDir())
	r := command(t, "", script, "-qec", line, "/dev/null").OK(t).Shows(t, says)
	frames := strings.Split(r.Stdout, "\r\x1b[K")
	if len(frames) < 4 {
		t.Fatalf("there is no live line in %q", r.Stdout)
	}
	for _, frame := range frames[:len(frames)-1] {
		if utf8.RuneCountInString(frame) >= columns || strings.Contains(frame, "\n") {
			t.Errorf("at %d columns: %q", columns, frame)
		}
	}
}

// TestColours: states have colours on a terminal, unless the user has turned them off.
func TestColours(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("there is no terminal to be had")
	}
	escapes := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for before, want := range map[string]bool{"TERM=xterm": true, "TERM=xterm NO_COLOR=1": false, "TERM=dumb": false} {
		line := fmt.Sprintf("%s '%s' status --data-dir '%s'", before, binary, suite.DataDir())
		r := command(t, "", script, "-qec", line, "/dev/null").OK(t)
		if escapes.MatchString(r.Stdout) != want {
			t.Errorf("with %s: %q", before, r.Stdout)
		}
	}
	if r := gardenlite(t, suite.DataDir(), "status").OK(t); escapes.MatchString(r.Stdout) {
		t.Errorf("in a pipe: %q", r.Stdout)
	}
}

// TestProjectCommand makes a Project by command, in which its member can list Shoots.
func TestProjectCommand(t *testing.T) {
	t.Parallel()
	dir := suite.DataDir()
	gardenlite(t, dir, "project", "create", "commanded", "--member", "ann@example.com:viewer").OK(t).Shows(t, "is ready")
	gardenlite(t, dir, "project", "create", "commanded").OK(t).Shows(t, "exists already")
	if r := gardenlite(t, dir, "project", "create", "commanded", "--member", "ann@example.com:admin"); r.Code != 1 {
		t.Errorf("with another member: exit status %d, %s", r.Code, r.Stdout)
	}
	eventually(t, waitTimeout, func(context.Context) error {
		r := command(t, "", kubectlBinary, "auth", "can-i", "list", "shoots", "-n", "garden-commanded",
			"--as", "ann@example.com")
		if r.Code != 0 {
			return fmt.Errorf("%s%s", r.Stdout, r.Stderr)
		}
		return nil
	})
	sample := gardenlite(t, dir, "sample", "shoot").OK(t).Stdout
	// Another test may have created it.
	command(t, sample, kubectlBinary, "apply", "--dry-run=server", "-f", "-").OK(t).Shows(t, "shoot.core.gardener.cloud/sample ").
		Shows(t, "(server dry run)")
}
