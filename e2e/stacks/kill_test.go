//go:build soak

package stacks

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// killAfter kills the landscape's process after a time, and starts it again.
func (l *landscape) killAfter(t *testing.T, delay time.Duration) *landscape {
	t.Helper()
	pid := suite.StatusOf(t, l.dir).PID
	timer := time.NewTimer(delay)
	defer timer.Stop()
	<-timer.C
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, suite.Timeout, func(context.Context) error {
		if err := syscall.Kill(pid, 0); err == nil {
			return fmt.Errorf("process %d is still there", pid)
		}
		return nil
	})
	return ownLandscape(t, l.dir)
}

// TestKilledUnderStacks kills the process at moments of an installation, an upgrade and an uninstallation: it converges, and
// nothing is orphaned.
func TestKilledUnderStacks(t *testing.T) {
	t.Parallel()
	const rounds = 30
	l := ownLandscape(t, filepath.Join(t.TempDir(), "landscape"))
	first := bucketStack("killed.example.org", "Cluster", "0.1")
	second := first.replace(t, "app.yaml", "version: 0.1", "version: 0.2").replace(t, crdPath, "size: {type: integer}",
		"size: {type: integer}, colour: {type: string}")
	l.namespace(t, "killed")
	references := []string{l.write(t, "first", first), l.write(t, "second", second)}
	objects := append(objectsOf(clusterInstall, "killed", "buckets"), place{crdResource, "", "buckets.killed.example.org"},
		place{stacksResource(clusterInstall), "killed", "buckets"}) // last: an install applied during its deletion is deleted with it
	for round := range rounds {
		delay := func(part int) time.Duration { return time.Duration(7+23*(3*round+part)%331) * time.Millisecond }
		l.install(t, clusterInstall, "killed", "buckets", references[0])
		l = l.killAfter(t, delay(0))
		l.ready(t, clusterInstall, "killed", "buckets", "0.1")
		l.exists(t, objects, true)
		l.install(t, clusterInstall, "killed", "buckets", references[1])
		l = l.killAfter(t, delay(1))
		l.ready(t, clusterInstall, "killed", "buckets", "0.2")
		l.hasField(t, "buckets.killed.example.org", "colour")
		must(t, l.dyn.Resource(stacksResource(clusterInstall)).Namespace("killed").Delete(t.Context(), "buckets", metav1.DeleteOptions{}))
		l = l.killAfter(t, delay(2))
		l.exists(t, objects, false)
		l.expectNothingForbidden(t)
	}
}
