package seedhost

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/node/process"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

// TestSeedClusterOfSameName checks that a cluster can be created with the name of one that was removed, and has none of its
// objects and authorities. The files of its Pods and the data of its volumes go with it.
func TestSeedClusterOfSameName(t *testing.T) {
	testSeedClusterOfSameName(t, "sqlite")
}

// testSeedClusterOfSameName creates and removes a cluster twice at a datastore.
func testSeedClusterOfSameName(t *testing.T, endpoint string) {
	t.Helper()
	h := &Host{cfg: Config{Name: "x", Dir: t.TempDir(), BindAddress: "127.0.0.1", Datastore: endpoint, Status: &control.Store{},
		Clock: clock.RealClock{}, Selects: all}}
	folder := filepath.Join(h.cfg.Dir, statedir.ProcessesFolder)
	var err error
	h.processes, err = process.Start(process.Config{Dir: folder, Images: &process.Images{}, Clock: h.cfg.Clock, Log: testr.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.processes.Close() })
	pod := filepath.Join(folder, "pods", "uid")
	volume := filepath.Join(folder, process.PersistentFolder, "seed-m", "uid")
	var authority []byte
	for range 2 {
		cluster, err := h.startSeedCluster(t.Context(), "m", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(cluster.AdminConfig().CAData, authority) {
			t.Error("the cluster has the authority of the removed one")
		}
		authority = cluster.AdminConfig().CAData
		c, err := newClient(cluster.AdminConfig())
		if err != nil {
			t.Fatal(err)
		}
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "x"}}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("reading an object of the removed cluster: %v", err)
		}
		if err := c.Create(t.Context(), object); err != nil {
			t.Error(err)
		}
		for _, dir := range []string{pod, volume} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(pod, "node"), []byte("seed-m"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := h.removeSeedCluster(t.Context(), "m", cluster); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{pod, volume} {
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left of the removed cluster: %v", dir, err)
			}
		}
	}
}

// TestForgetLastRun checks that a landscape whose datastore is in memory starts without what belongs to objects of the last
// run, deployed gardenlets among it, and that others keep it.
func TestForgetLastRun(t *testing.T) {
	for kind, keeps := range map[string]bool{datastore.Memory: false, datastore.SQLite: true} {
		dir := t.TempDir()
		paths := []string{"processes/volumes/seed-x/uid", "cloud/instances/x", "data/shoots/x", "gardenlets/x.json"}
		for _, path := range paths {
			if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		h, err := New(Config{Name: "x", Dir: dir, Datastore: kind, Status: &control.Store{}, Clock: clock.RealClock{}, Selects: all})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		for _, path := range paths {
			if _, err := os.Stat(filepath.Join(dir, path)); keeps != (err == nil) {
				t.Errorf("with %s, %s: %v", kind, path, err)
			}
		}
	}
}
