package testenv_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/testutil"
	"github.com/gardenlite/gardenlite/pkg/testenv"
)

// expectClosed checks that nothing of the test's landscapes is open once they have been stopped. The test calls it first.
func expectClosed(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		for _, name := range []string{"gardenlite-test-", "inotify"} {
			if open := testutil.OpenFiles(t, name); len(open) > 0 {
				t.Errorf("after the landscapes have been stopped, files are open: %v", open)
			}
		}
	})
}

// testShootsLeaveNothing makes and deletes Shoots, some of them after a sleep, and compares what the process uses in the end with
// what it used after the third.
func testShootsLeaveNothing(t *testing.T, env *testenv.Env) {
	const (
		rounds, warm = 30, 3
		// leaked is what the process may use more, in bytes: most of it is what caches and heaps differ by at any two moments.
		leaked = 64 << 20
	)
	ctx, cancel := context.WithTimeout(t.Context(), rounds*shootPatience)
	defer cancel()
	var files, memory int
	var goroutinesBelow func(int)
	for n := 1; n <= rounds; n++ {
		name := fmt.Sprint("round-", n)
		shoot, err := env.NewShoot(ctx, name, testenv.WithWorkers(0))
		if err != nil {
			t.Fatal(err)
		}
		if n%3 == 0 {
			hibernationPossible(t, env, name)
			patch(t, env, name, `{"spec":{"hibernation":{"enabled":true}}}`)
			if err := shoot.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := shoot.Delete(ctx); err != nil {
			t.Fatal(err)
		}
		if n == warm {
			goroutinesBelow = testutil.GoroutineGrowth(t)
			files, memory = len(testutil.OpenFiles(t, "")), resident(t)
		}
		t.Logf("after %d Shoots: %d files, %d MiB", n, len(testutil.OpenFiles(t, "")), resident(t)>>20)
	}
	goroutinesBelow(rounds - warm)
	testutil.Eventually(t, time.Minute, func(context.Context) error {
		if now, open := resident(t), len(testutil.OpenFiles(t, "")); open >= files+rounds-warm || now >= memory+leaked {
			return fmt.Errorf("%d files and %d MiB, after %d Shoots %d files and %d MiB", open, now>>20, warm, files, memory>>20)
		}
		return nil
	})
	if open := testutil.OpenFiles(t, " (deleted)"); len(open) > 0 {
		t.Errorf("deleted files are open: %v", open)
	}
}

// hibernationPossible waits until the garden allows the hibernation of a Shoot, which is a moment after its creation: the check
// of its constraints may have come before its control plane was complete.
func hibernationPossible(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	testutil.Eventually(t, time.Minute, func(ctx context.Context) error {
		shoot := &corev1beta1.Shoot{}
		if err := env.Client().Get(ctx, client.ObjectKey{Namespace: "garden-dev", Name: name}, shoot); err != nil {
			return err
		}
		for _, c := range shoot.Status.Constraints {
			if c.Type == corev1beta1.ShootHibernationPossible && c.Status != corev1beta1.ConditionTrue {
				return fmt.Errorf("hibernation is not possible: %s", c.Message)
			}
		}
		return nil
	})
}

// resident returns the anonymous resident memory of the process in bytes, without garbage.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("memory is measured on Linux")
	}
	var kibibytes int
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	if _, err := fmt.Sscan(rest, &kibibytes); err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}
