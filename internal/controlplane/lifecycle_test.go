package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus"
	"io"
	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/datastore"
)

func TestMain(m *testing.M) {
	if os.Getenv("GARDENLITE_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
		logrus.SetOutput(io.Discard)
	}
	os.Exit(m.Run())
}

// TestStartStopCycles starts and stops a further server beside one that stays, and looks at what is left.
func TestStartStopCycles(t *testing.T) {
	cycles := 20
	dir := t.TempDir()
	stays := start(t, Config{Name: "stays", PKIDir: filepath.Join(dir, "stays", "pki"), DataDir: filepath.Join(dir, "stays", "data"), Datastore: datastore.Memory})
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
	// What a server makes when it is asked for, and would make at some time during the test.
	if _, err := adminClient(t, stays).Discovery().RESTClient().Get().AbsPath(openAPIV2Path).DoRaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	cycle() // what is made once and kept
	cycle()
	before := settle(t, 0)
	stacksBefore := stacks()
	round := func() (after usage, limit uint64) {
		for range cycles {
			cycle()
		}
		after = settle(t, before.goroutines+10)
		t.Logf("before: %s; after %d cycles: %s", before, cycles, after)
		if after.goroutines > before.goroutines+10 {
			t.Errorf("%d goroutines more after %d cycles:\n%s", after.goroutines-before.goroutines, cycles, moreThan(stacksBefore, stacks()))
		}
		return after, before.heap + before.heap/10 + 8<<20
	}
	after, limit := round()
	if after.heap > limit { // where the first cycles were slow, something that is made once came later: what leaks grows again
		before = after
		after, limit = round()
	}
	if after.heap > limit {
		t.Errorf("%d MiB live heap after %d cycles, %d MiB before", after.heap>>20, cycles, before.heap>>20)
		if name := os.Getenv("GARDENLITE_HEAP_PROFILE"); name != "" {
			f, _ := os.Create(name)
			_ = pprof.WriteHeapProfile(f)
			_ = f.Close()
		}
	}
}

type usage struct {
	goroutines int
	heap       uint64
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d MiB live heap", u.goroutines, u.heap>>20)
}

// settle waits until goroutines that are ending have ended: until at most want are left or, if nothing is known of what to
// want, no fewer get left.
func settle(t *testing.T, want int) usage {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	lowest, since := runtime.NumGoroutine(), time.Now()
	for time.Now().Before(deadline) && lowest > want && (want > 0 || time.Since(since) < 4*time.Second) {
		<-ticker.C
		if n := runtime.NumGoroutine(); n < lowest {
			lowest, since = n, time.Now()
		}
	}
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return usage{runtime.NumGoroutine(), stats.HeapAlloc}
}

var address = regexp.MustCompile(`0x[0-9a-f]+`)

// stacks counts goroutines by where they are.
func stacks() map[string]int {
	var out bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&out, 1)
	counts := map[string]int{}
	for block := range strings.SplitSeq(out.String(), "\n\n") {
		head, rest, _ := strings.Cut(block, "\n")
		var n int
		if _, err := fmt.Sscanf(head, "%d @", &n); err == nil {
			counts[address.ReplaceAllString(rest, "")] += n
		}
	}
	return counts
}

func moreThan(before, after map[string]int) string {
	var lines []string
	for stack, n := range after {
		if n > before[stack]+1 {
			lines = append(lines, fmt.Sprintf("%d more of\n%s", n-before[stack], stack))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
