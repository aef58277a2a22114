package controlplane

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func TestMain(m *testing.M) {
	if os.Getenv("GARDENLITE_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
		logrus.SetOutput(io.Discard)
	}
	os.Exit(m.Run())
}

// TestStartStopCycles starts and stops a server repeatedly beside one that stays, and checks that it leaks neither
// goroutines nor memory nor open files, and that both have one watcher of files.
func TestStartStopCycles(t *testing.T) {
	if !testutil.OwnProcess(t) {
		return
	}
	const cycles = 20
	dir := t.TempDir()
	stays := start(t, Config{Name: "stays", PKIDir: filepath.Join(dir, "stays", "pki"),
		DataDir: filepath.Join(dir, "stays", "data"), Datastore: datastore.Memory})
	cycle := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		server, err := Start(ctx, Config{Name: "cycle", PKIDir: filepath.Join(dir, "cycle", "pki"), DataDir: filepath.Join(dir, "cycle", "data")})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	// The OpenAPI documents are created on demand, which could otherwise happen at any time during the test.
	if _, err := adminClient(t, stays).Discovery().RESTClient().Get().AbsPath(openAPIV2Path).DoRaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	cycle() // creates what is created once per process
	cycle()
	before, growthBelow, files := liveHeap(), testutil.GoroutineGrowth(t), len(testutil.OpenFiles(t, ""))
	round := func() (after, limit uint64) {
		for range cycles {
			cycle()
		}
		growthBelow(cycles / 2)
		if now := testutil.OpenFiles(t, ""); len(now) >= files+cycles/2 {
			t.Errorf("%d files are open, after %d cycles %d: %v", files, cycles, len(now), now)
		}
		if left := testutil.OpenFiles(t, filepath.Join(dir, "cycle")); len(left) > 0 {
			t.Errorf("files of a server that has ended are open: %v", left)
		}
		if watchers := testutil.OpenFiles(t, "inotify"); len(watchers) > 1 {
			t.Errorf("there are %d watchers of files", len(watchers))
		}
		after = liveHeap()
		t.Logf("%d MiB live heap before, %d MiB after %d cycles", before>>20, after>>20, cycles)
		return after, before + before/10 + 8<<20
	}
	after, limit := round()
	if after > limit { // If the first cycles were slow, something that is created once came later. A leak grows again in the next round.
		before = after
		after, limit = round()
	}
	if after > limit {
		t.Errorf("%d MiB live heap after %d cycles, %d MiB before", after>>20, cycles, before>>20)
		if name := os.Getenv("GARDENLITE_HEAP_PROFILE"); name != "" {
			f, _ := os.Create(name)
			_ = pprof.WriteHeapProfile(f)
			_ = f.Close()
		}
	}
}

func liveHeap() uint64 {
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
