package testutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// OpenFiles returns the files that this process has open whose names, as the kernel shows them, contain a text. It
// returns none where /proc does not exist.
func OpenFiles(t testing.TB, name string) (open []string) {
	t.Helper()
	const folder = "/proc/self/fd"
	descriptors, _ := os.ReadDir(folder)
	for _, descriptor := range descriptors {
		target, err := os.Readlink(filepath.Join(folder, descriptor.Name()))
		if err == nil && strings.Contains(target, name) {
			open = append(open, target)
		}
	}
	return open
}
