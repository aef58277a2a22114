package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestLastNodes: the nodes are read once more after the rotation is done, and that may take longer than completion.
func TestLastNodes(t *testing.T) {
	var out strings.Builder
	done, reads := make(chan struct{}), 0
	p := nodeProgress{printf: func(format string, args ...any) { printf(&out, format, args...) },
		before: map[string]string{"a": "old"}}
	p.read = func(ctx context.Context) (map[string]string, []corev1.Node, error) {
		if reads++; reads == 1 {
			close(done)
			return nil, nil, errors.New("the API server restarts")
		}
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < 2*completionTimeout {
			t.Errorf("the last read has to end by %s", deadline)
		}
		return map[string]string{"a": "new"}, []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node",
			Labels:      map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": "a"},
			Annotations: map[string]string{checksumApplied: "new"}}}}, ctx.Err()
	}
	p.follow(t.Context(), done)
	if want := "Node node has the new configuration (1 of 1).\n"; out.String() != want || reads != 2 {
		t.Errorf("after %d reads: %q", reads, out.String())
	}
}

// TestRotations: each command requests the operations of what it is named after.
func TestRotations(t *testing.T) {
	want := map[string][2]string{
		"ssh-keypair": {"rotate-ssh-keypair"}, "observability": {"rotate-observability-credentials"},
		"etcd-encryption-key": {"rotate-etcd-encryption-key"}, "ca": {"rotate-ca-start", "rotate-ca-complete"},
		"serviceaccount-key": {"rotate-serviceaccount-key-start", "rotate-serviceaccount-key-complete"},
		"credentials":        {"rotate-credentials-start", "rotate-credentials-complete"},
	}
	for _, r := range rotations {
		if got := [2]string{r.operation, r.complete}; got != want[r.name] {
			t.Errorf("%s requests %q, not %q", r.name, got, want[r.name])
		}
	}
	if len(rotations) != len(want) {
		t.Errorf("there are %d rotations, not %d", len(rotations), len(want))
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
