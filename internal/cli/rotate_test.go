package cli

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUpdated: a node has the new configuration when it has applied what its pool wants now and did not want before.
func TestUpdated(t *testing.T) {
	var nodes []corev1.Node
	for name, node := range map[string]struct{ secret, applied string }{
		"updated": {"a", "new"}, "outdated": {"a", "old"}, "unchanged": {"b", "same"}, "rolled": {"c", "first"}, "unknown": {"", "new"},
	} {
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels:      map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": node.secret},
			Annotations: map[string]string{checksumApplied: node.applied}}})
	}
	before, wanted := map[string]string{"a": "old", "b": "same"}, map[string]string{"a": "new", "b": "same", "c": "first"}
	if got := updated(nodes, before, wanted); !slices.Equal(got, []string{"rolled", "updated"}) {
		t.Errorf("updated are %v", got)
	}
}

func TestRotateUsage(t *testing.T) {
	for line, want := range map[string]int{
		"rotate ssh-keypair": exitUsage, "rotate ssh-keypair a/b/c": exitUsage, "rotate ssh-keypair a --complete": exitUsage,
		"rotate ca dev/x --complete": exitNotRunning, "rotate credentials dev/x --wait": exitNotRunning,
		"rotate etcd-encryption-key dev/x": exitNotRunning,
		"rotate serviceaccount-key dev/x":  exitNotRunning, "rotate observability dev/x": exitNotRunning, "rotate passwords dev/x": exitUsage,
	} {
		if code, _, errs := runLine(t, line); code != want {
			t.Errorf("%s: exit status %d, %s", line, code, errs)
		}
	}
}
