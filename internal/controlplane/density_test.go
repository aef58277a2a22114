package controlplane_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/controlplane/kubecontrollers"
)

// BenchmarkDensity starts control planes with controllers, one after the other, and logs what each costs: how long the
// start took, and the growth of the heap, the memory and the goroutines of the process after a garbage collection. With
// GARDENLITE_PROFILES, it writes profiles to that folder.
func BenchmarkDensity(b *testing.B) {
	for b.Loop() {
		density(b, 10)
	}
}

func density(b *testing.B, count int) {
	dir := b.TempDir()
	var before measured
	for n := 1; n <= count; n++ {
		begin := time.Now()
		stop := startPlane(b, filepath.Join(dir, strconv.Itoa(n)))
		b.Cleanup(stop)
		took := time.Since(begin)
		now := measure(b)
		b.Logf("%2d: %4d ms, heap %3d MiB (%+d), stacks %3d MiB (%+d), resident %3d MiB (%+d, %d before that was "+
			"collected), %d goroutines (%+d)", n, took.Milliseconds(),
			now.heap>>20, int(now.heap-before.heap)>>20, now.stacks>>20, int(now.stacks-before.stacks)>>20,
			now.resident>>20, int(now.resident-before.resident)>>20, now.uncollected>>20, now.goroutines, now.goroutines-before.goroutines)
		before = now
		profile(b, n)
	}
}

const encryption = `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration",` +
	`"resources":[{"resources":["secrets"],"providers":[` +
	`{"aescbc":{"keys":[{"name":"key","secret":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}]}},{"identity":{}}]}]}`

func startPlane(b *testing.B, dir string) (stop func()) {
	config := filepath.Join(b.TempDir(), "encryption.json")
	if err := os.WriteFile(config, []byte(encryption), 0o600); err != nil {
		b.Fatal(err)
	}
	server, err := controlplane.Start(b.Context(), controlplane.Config{
		Name: "shoot--bench--" + filepath.Base(dir), PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data"),
		LowMemory: true, EncryptionConfig: config,
	})
	if err != nil {
		b.Fatal(err)
	}
	p := server.PKI()
	controllers, err := kubecontrollers.Start(kubecontrollers.Config{
		ClientConfig: server.ClientConfig, Idle: server.Idle, Nodes: true, RootCA: p.CAPEM(), SigningCertFile: p.SigningCertFile(),
		SigningKeyFile: p.SigningKeyFile(), ServiceAccountKeyFile: p.ServiceAccountKeyFile(),
	})
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		controllers.Stop()
		if err := server.Stop(); err != nil {
			b.Error(err)
		}
	}
}

type measured struct {
	heap, stacks, resident, uncollected uint64
	goroutines                          int
}

// measure waits until the work after a start has been done.
func measure(b *testing.B) measured {
	time.Sleep(5 * time.Second)
	uncollected := resident(b)
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return measured{heap: stats.HeapAlloc, stacks: stats.StackInuse, resident: resident(b), uncollected: uncollected,
		goroutines: runtime.NumGoroutine()}
}

// resident returns the anonymous resident memory of the process.
func resident(b *testing.B) uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err) // memory is measured on Linux
	}
	var kib uint64
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			_, _ = fmt.Sscan(value, &kib)
		}
	}
	return kib << 10
}

func profile(b *testing.B, n int) {
	dir := os.Getenv("GARDENLITE_PROFILES")
	if dir == "" {
		return
	}
	for _, name := range []string{"heap", "goroutine"} {
		f, err := os.Create(filepath.Join(dir, name+strconv.Itoa(n)+".pprof"))
		if err != nil {
			b.Fatal(err)
		}
		_ = pprof.Lookup(name).WriteTo(f, 0)
		_ = f.Close()
	}
}
