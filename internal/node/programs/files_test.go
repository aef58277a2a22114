package programs

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
)

// TestWriteFileOnFullDisk checks that a file keeps its content if there is no room for the new one.
func TestWriteFileOnFullDisk(t *testing.T) {
	disk, err := vfs.Open(vfs.Config{Clock: clocktesting.NewFakeClock(time.Now()), Limits: vfs.Limits{Bytes: 64 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	f := files{disk}
	const file, before = "/var/lib/kubelet/pki/client.pem", "certificate"
	if err := f.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	for size := 32 << 10; size > 0; size /= 2 {
		for i := 0; disk.WriteFile(fmt.Sprintf("/tmp/%d-%d", size, i), make([]byte, size), 0o600) == nil; i++ {
		}
	}
	err = f.WriteFile(file, make([]byte, 2048), 0o600)
	if now, _ := f.ReadFile(file); err == nil || string(now) != before {
		t.Errorf("error %v, and the file has %q", err, now)
	}
}
