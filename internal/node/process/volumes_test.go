package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestDeleteVolumes(t *testing.T) {
	dir := t.TempDir()
	r := &Runner{cfg: Config{Dir: dir}}
	exists := func(path ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{dir, PersistentFolder}, path...)...))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		return err == nil
	}
	for _, path := range []string{"a/1", "a/2", "b/1"} {
		if err := os.MkdirAll(filepath.Join(dir, PersistentFolder, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []struct {
		cluster string
		volume  types.UID
	}{{"a", "../b"}, {"a", ".."}, {"..", "pods"}, {"", "1"}, {"a", ""}, {"a/..", "b"}} {
		if err := r.DeleteVolume(bad.cluster, bad.volume); err == nil {
			t.Errorf("volume %q of cluster %q: no error", bad.volume, bad.cluster)
		}
	}
	if err := r.DeleteVolume("a", "1"); err != nil || exists("a", "1") || !exists("a", "2") || !exists("b", "1") {
		t.Errorf("deleting one volume: %v", err)
	}
	if err := r.DeleteVolumes("a"); err != nil || exists("a") || !exists("b", "1") {
		t.Errorf("deleting the volumes of a cluster: %v", err)
	}
}
