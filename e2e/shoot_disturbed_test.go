package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestShootOfTeam creates a Shoot in a project that "kubectl apply" has made, with a context in the user's own
// kubeconfig, has it fail and recover with commands, and deletes it with its context.
func TestShootOfTeam(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	kubeconfig, own := filepath.Join(l.dir, "kubeconfig"), filepath.Join(t.TempDir(), "own")
	kubectl := func(args ...string) string {
		t.Helper()
		args = append([]string{"--kubeconfig", kubeconfig, "-n", "garden-team"}, args...)
		return command(t, "", kubectlBinary, args...).OK(t).Stdout
	}
	withOwn := func(args ...string) result {
		t.Helper()
		args = append([]string{"KUBECONFIG=" + own, binary, "--data-dir", l.dir}, args...)
		return command(t, "", "env", args...).OK(t)
	}
	project := "apiVersion: core.gardener.cloud/v1beta1\nkind: Project\nmetadata: {name: team}\n" +
		"spec: {namespace: garden-team}\n"
	command(t, project, kubectlBinary, "--kubeconfig", kubeconfig, "apply", "-f", "-").OK(t)
	create := []string{"shoot", "create", "x", "--project", "team", "--workers", "1", "--seed", "local"}
	gardenlite(t, l.dir, create...).OK(t)
	gardenlite(t, l.dir, "shoot", "fail", "team/x", "--kind", "worker", "--code", "ERR_INFRA_QUOTA_EXCEEDED",
		"--message", "no machines left", "--always").OK(t)
	create = append(create, "--wait")
	if r := gardenlite(t, l.dir, create...); r.Code != 1 ||
		!strings.Contains(r.Stderr, "ERR_INFRA_QUOTA_EXCEEDED") || !strings.Contains(r.Stderr, "no machines left") {
		t.Errorf("a Shoot that fails: exit status %d, %s", r.Code, r.Stderr)
	}
	gardenlite(t, l.dir, "shoot", "fail", "team/x", "--off").OK(t)
	gardenlite(t, l.dir, "shoot", "fail", "team/x", "--code", "ERR_RETRYABLE_INFRA_DEPENDENCIES", "--once").OK(t)
	gardenlite(t, l.dir, "shoot", "delay", "team/x", "--kind", "Network", "1s").OK(t)
	kubectl("annotate", "shoot", "x", "gardener.cloud/operation=retry")
	eventually(t, shootTimeout, func(context.Context) error { // the failure is recorded
		failed := command(t, "", kubectlBinary, "--kubeconfig", statedir.SeedKubeconfigPath(l.dir, "local"),
			"-n", "shoot--team--x", "get", "infrastructures,workers",
			"-o", `jsonpath={range .items[*]}{.kind}:{.metadata.annotations.gardenlite\.dev/failed} {end}`)
		if !strings.Contains(failed.OK(t).Stdout, "Infrastructure:once.") {
			return fmt.Errorf("the Infrastructure has not failed: %s", failed.Stdout)
		}
		if strings.Contains(failed.Stdout, "Worker:once.") {
			t.Fatalf("once is not once for the Shoot: %s", failed.Stdout)
		}
		return nil
	})
	withOwn(append(create, "--kubeconfig-context")...).Shows(t, "Shoot team/x is ready")
	command(t, "", kubectlBinary, "--kubeconfig", own, "get", "nodes").OK(t).Shows(t, "shoot--team--x")
	annotations := kubectl("get", "shoot", "x", "-o", "jsonpath={.metadata.annotations}")
	if !strings.Contains(annotations, `"gardenlite.dev/delay.Network":"1s"`) {
		t.Errorf("annotations %s", annotations)
	}
	withOwn("shoot", "delete", "team/x", "--yes", "--wait")
	left := command(t, "", kubectlBinary, "--kubeconfig", own, "config", "view").OK(t).Stdout
	if strings.Contains(left, "team--x") {
		t.Errorf("after the deletion, the user's kubeconfig has %s", left)
	}
}
