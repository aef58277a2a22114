package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// extensionCommands installs the example of an extension, first simulated and then as a process, creates a Shoot that needs it, and
// uninstalls it.
func (l *landscape) extensionCommands(t *testing.T) {
	programs, chart := t.TempDir(), "../examples/extension/chart"
	command(t, "", "go", "build", "-o", programs, "../examples/extension").OK(t)
	program := filepath.Join(programs, "extension")
	kubectl := func(args ...string) result {
		t.Helper()
		return command(t, "", kubectlBinary, append([]string{"--kubeconfig", filepath.Join(l.dir, "kubeconfig"), "-n", "garden-dev"}, args...)...)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no type":            {[]string{"install", chart}, 2, "type"},
		"a wrong kind":       {[]string{"install", chart, "--type", "Pod/x"}, 2, "OperatingSystemConfig"},
		"no chart":           {[]string{"install", t.TempDir(), "--type", "Extension/x"}, 2, "Chart.yaml"},
		"no file":            {[]string{"install", "none", "--type", "Extension/x"}, 2, "neither a folder with a chart"},
		"no program":         {[]string{"install", chart, "--type", "Extension/x", "--run", "none"}, 2, "no such file"},
		"two programs":       {[]string{"install", chart, "--type", "Extension/x", "--run", program, "--run", program}, 2, "IMAGE=PROGRAM"},
		"the landscape's":    {[]string{"install", chart, "--type", "Extension/x", "--as", "provider-local"}, 1, "choose another name"},
		"uninstall provider": {[]string{"uninstall", "provider-local"}, 1, "did not make"},
		"unknown":            {[]string{"describe", "none"}, 1, "gardenlite extension list"},
	} {
		r := gardenlite(t, l.dir, append([]string{"extension"}, test.args...)...)
		if r.Code != test.code || !strings.Contains(r.Stderr, test.says) {
			t.Errorf("%s: exit status %d, %s", name, r.Code, r.Stderr)
		}
	}

	install := []string{"extension", "install", chart, "--type", "Extension/example", "--type", "OperatingSystemConfig/example-os"}
	gardenlite(t, l.dir, install...).OK(t).Shows(t, "The extension example is ready in the seeds local.")
	kubectl("apply", "-f", "../examples/extension/cloudprofile.yaml").OK(t)
	shoot := "../examples/extension/shoot.yaml"
	eventually(t, waitTimeout, func(context.Context) error { // the machine image is offered a moment later
		if r := kubectl("apply", "-f", shoot); r.Code != 0 {
			return fmt.Errorf("creating the Shoot: %s", r.Stderr)
		}
		return nil
	})
	state := func(field string) string {
		t.Helper()
		return kubectl("get", "shoot", "example", "-o", "jsonpath={.status.lastOperation."+field+"}").OK(t).Stdout
	}
	eventually(t, waitTimeout, func(context.Context) error {
		says := state("description")
		for _, want := range []string{"of type example waits for its controller: Deployment extension-",
			"whose container example is simulated", "never answered"} {
			if !strings.Contains(says, want) {
				return fmt.Errorf("the Shoot says %q", says)
			}
		}
		return nil
	})

	install = append(install, "--run", program)
	gardenlite(t, l.dir, install...).OK(t).Shows(t, "The extension example is ready")
	gardenlite(t, l.dir, "extension", "describe", "example").OK(t).Shows(t, program).Shows(t, "OperatingSystemConfig/example-os")
	eventually(t, waitTimeout, func(context.Context) error { // it is ready when its process runs
		if log := gardenlite(t, l.dir, "extension", "logs", "example").OK(t).Stdout; !strings.Contains(log, "Starting") {
			return fmt.Errorf("its log is %q", log)
		}
		return nil
	})
	pods := func() string {
		t.Helper()
		r := gardenlite(t, l.dir, "extension", "describe", "example", "-o", "json").OK(t)
		_, after, _ := strings.Cut(r.Stdout, `"pod": "`)
		name, _, _ := strings.Cut(after, `"`)
		return name
	}
	before := pods()
	gardenlite(t, l.dir, install...).OK(t)
	if now := pods(); now == before || now == "" {
		t.Errorf("the program was not started again: Pod %q, and then %q", before, now)
	}
	eventually(t, shootTimeout, func(context.Context) error {
		if now := state("state"); now != "Succeeded" {
			return fmt.Errorf("the Shoot is %s: %s", now, state("description"))
		}
		return nil
	})

	if r := gardenlite(t, l.dir, "extension", "uninstall", "example", "--timeout", "2s"); r.Code != 1 ||
		!strings.Contains(r.Stderr, "Extension/example") {
		t.Errorf("an extension in use: exit status %d, %s", r.Code, r.Stderr)
	}
	gardenlite(t, l.dir, "shoot", "delete", "example", "--yes", "--wait").OK(t)
	kubectl("delete", "namespacedcloudprofile", "example").OK(t)
	gardenlite(t, l.dir, "extension", "uninstall", "example").OK(t).Shows(t, "The extension example is uninstalled.")
	if r := gardenlite(t, l.dir, "extension", "list", "-o", "json"); strings.Contains(r.OK(t).Stdout, `"example"`) {
		t.Errorf("the extension is still listed: %s", r.Stdout)
	}
	gardenlite(t, l.dir, "image", "forget", "registry.example.com/extension:v1").OK(t)
}
