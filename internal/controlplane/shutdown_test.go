package controlplane

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
)

// TestStoppedWhileItStarts stops servers at several moments of their start. The work in progress then fails, and
// Kubernetes' code would end the process, which must continue.
func TestStoppedWhileItStarts(t *testing.T) {
	dir := t.TempDir()
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithCancel(t.Context())
		server, err := Start(ctx, Config{Name: "short", PKIDir: filepath.Join(dir, "pki"), DataDir: filepath.Join(dir, "data"),
			OnPhase: func(name string, _ time.Duration) {
				if name == "server chain" {
					time.AfterFunc(after, cancel)
				}
			}})
		cancel()
		if err == nil { // the start was faster
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		if !quirks.ShuttingDown() {
			t.Error("the stop of a server was not counted")
		}
	}
}
