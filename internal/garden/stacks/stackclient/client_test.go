package stackclient

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
)

// TestKeep checks that different archives are different files, also if they have no digest, as those of docker.
func TestKeep(t *testing.T) {
	folder := t.TempDir()
	for _, p := range []*stackpackage.Package{{}, {Digest: "sha256:aa"}} {
		for _, archive := range [][]byte{[]byte("one"), []byte("two")} {
			kept, err := keep(p, archive, folder)
			if err != nil {
				t.Fatal(err)
			}
			name := kept.Reference[len(stackpackage.FileScheme):]
			if data, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(data, archive) {
				t.Errorf("%s has %q, %v", name, data, err)
			}
		}
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 3 {
		t.Errorf("there are the files %v, %v", files, err)
	}
}
