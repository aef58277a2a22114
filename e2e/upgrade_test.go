//go:build soak

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/datastore/datastoretest"
)

// TestUpgrade: a landscape with a Shoot, a node that was changed by hand, a stack and a Bastion that an older binary (OLDER in
// the Makefile) has created works with this one: with the same nodes, files, kubeconfig, stack and Bastion.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		upgraded(t)
	})
	t.Run("etcd", func(t *testing.T) { // its state directory has what is in the datastore now
		t.Parallel()
		flags := []string{"--datastore", datastoretest.StartEtcd(t)}
		l := upgraded(t, flags...)
		if said := l.output.String(); !strings.Contains(said, "moved from the state directory into the datastore") {
			t.Errorf("up does not say what has moved: %s", said)
		}
		other := stoppedLandscape(t)
		other.up(t, flags...)
		l.kill()
		eventually(t, shootTimeout, func(ctx context.Context) error { return (&shoot{l: other, name: "old"}).answers(ctx) })
		r := (&shoot{l: other, name: "old"}).ssh(t, "--", "sudo cat /etc/link").OK(t)
		if strings.TrimSpace(r.Stdout) != "changed" {
			t.Errorf("after a takeover the node has %q", r.Stdout)
		}
	})
}

// upgraded returns a landscape of the older binary that this one runs.
func upgraded(t *testing.T, flags ...string) *landscape {
	t.Helper()
	older := filepath.Join(suite.Root, "bin", "older")
	l := stoppedLandscape(t)
	run := func(args ...string) suite.Result {
		t.Helper()
		return suite.Command(t, "", older, append([]string{"--data-dir", l.dir}, args...)...).OK(t)
	}
	run(append([]string{"up", "-d", "--port", "0", "--ready-timeout", waitTimeout.String()}, flags...)...)
	t.Cleanup(func() {
		if !l.isRunning() { // the older one may run still
			_ = exec.Command(older, "--data-dir", l.dir, "down").Run()
		}
	})
	run("shoot", "create", "old", "--wait")
	hostname := strings.TrimSpace(run("ssh", "dev/old", "--keep-bastion", "--", "hostname").Stdout)
	const kept = "/var/lib/by-hand/kept file"
	run("ssh", "dev/old", hostname, "--", "sudo mkdir -p /var/lib/by-hand && echo changed | sudo tee '"+kept+"' && sudo chmod 640 '"+kept+
		"' && sudo ln -s '"+kept+"' /etc/link && sudo rm /etc/motd")
	if len(flags) == 0 { // with a datastore that processes share, a seed has no Node for it
		run("stack", "install", filepath.Join(suite.Root, "manifests", "stacks", "mysql"), "--namespace", "infra", "--wait")
	}
	shoot, err := clientcmd.RESTConfigFromKubeConfig([]byte(run("kubeconfig", "shoot", "dev/old").Stdout))
	must(t, err)
	run("down")

	l.up(t, flags...)
	gardenlite(t, l.dir, "shoot", "create", "old", "--wait").OK(t) // it is there, and ready
	nodes, err := clientOf(t, shoot).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	names := []string{}
	for _, node := range nodes.Items {
		names = append(names, node.Name)
	}
	if len(names) == 0 || !strings.Contains(strings.Join(names, " "), hostname) {
		t.Errorf("the Shoot has the nodes %v, and had %s", names, hostname)
	}
	bastions, err := l.dyn.Resource(operationsv1alpha1.SchemeGroupVersion.WithResource("bastions")).Namespace(
		"garden-dev").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(bastions.Items) != 1 {
		t.Fatalf("%d Bastions, want the one that was kept", len(bastions.Items))
	}
	bastion := bastions.Items[0].GetName()
	through := func(script string) string {
		t.Helper()
		r := suite.Command(t, "", binary, "--data-dir", l.dir, "ssh", "dev/old", hostname, "--bastion", bastion, "--", script).OK(t)
		return strings.TrimSpace(r.Stdout)
	}
	if got := through("hostname"); got != hostname {
		t.Errorf("Bastion %s leads to %q, and did to %q", bastion, got, hostname)
	}
	got := through("sudo cat /etc/link; sudo stat -c %a '" + kept + "'; test -e /etc/motd || echo removed")
	if got != "changed\n640\nremoved" {
		t.Errorf("what was changed by hand is %q", got)
	}
	if len(flags) == 0 {
		gardenlite(t, l.dir, "stack", "describe", "mysql", "--namespace", "infra").OK(t).Shows(t, "READY        True")
		gardenlite(t, l.dir, "shoot", "delete", "dev/old", "--yes", "--wait").OK(t)
	}
	return l
}
