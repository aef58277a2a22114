package shootplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// gardenOf has the Shoots by technical ID.
type gardenOf map[string]*corev1beta1.Shoot

func (g gardenOf) Shoot(_ context.Context, id string) (*corev1beta1.Shoot, error) { return g[id], nil }

func (g gardenOf) put(id, seed, uid string) {
	g[id] = &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1beta1.ShootSpec{SeedName: &seed}}
}

// TestOwner copies the description of a Shoot's control plane into another seed, over restarts of the process.
func TestOwner(t *testing.T) {
	const id = "shoot--dev--x"
	ctx, dir, g := t.Context(), t.TempDir(), gardenOf{}
	data := filepath.Join(dir, "data", "shoots", id, "state.db")
	restart := func() *Host {
		h := NewHost(HostConfig{Dir: dir, Garden: g, Log: logr.Discard(), Datastore: "sqlite"})
		t.Cleanup(h.Stop)
		return h
	}
	apply := func(h *Host, seed string) error {
		_, err := h.Apply(ctx, id, seed, DesiredState{}, nil)
		return err
	}
	isKept := func(about string, want bool) {
		t.Helper()
		if _, err := os.Stat(data); (err == nil) != want {
			t.Fatalf("%s: the data is there: %t", about, err == nil)
		}
	}
	h := restart()
	if err := apply(h, "a"); !errors.Is(err, ErrForeign) {
		t.Errorf("a Shoot that is not in the garden: %v", err)
	}
	g.put(id, "b", "1")
	if err := apply(h, "b"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := apply(h, "a"); !errors.Is(err, ErrOwnedByOtherSeed) {
		t.Errorf("while it runs in another seed: %v", err)
	}
	h.Stop()

	h = restart() // the attacker is the first who asks
	if err := apply(h, "a"); !errors.Is(err, ErrForeign) {
		t.Errorf("after a restart: %v", err)
	}
	if _, done, err := h.Remove(ctx, id, "a", true); !done || err != nil {
		t.Errorf("removing another seed's: done %t, %v", done, err)
	}
	isKept("another seed has removed it", true)
	delete(g, id) // not even the garden is asked for the owner
	if err := apply(h, "b"); err != nil {
		t.Errorf("the owner: %v", err)
	}
	h.Stop()

	h = restart()
	g.put(id, "a", "1") // it migrates
	if err := apply(h, "a"); err != nil {
		t.Fatal(err)
	}
	isKept("it has migrated", true)
	if err := apply(h, "b"); !errors.Is(err, ErrOwnedByOtherSeed) {
		t.Errorf("the former seed: %v", err)
	}
	h.Stop()

	h = restart()
	g.put(id, "b", "2") // another Shoot of that name
	if err := apply(h, "b"); err != nil {
		t.Fatal(err)
	}
	isKept("of another Shoot", false)
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.Stop()

	h = restart()
	g.put(id, "b", "3") // and another one, on the same seed
	if err := apply(h, "b"); err != nil {
		t.Fatal(err)
	}
	isKept("of another Shoot on the same seed", false)
	testutil.EventuallyTrue(t, "the owner removes it", func() bool {
		_, done, err := h.Remove(ctx, id, "b", true)
		return done && err == nil
	})
	if _, err := os.Stat(filepath.Dir(data)); err == nil {
		t.Error("its folder is left")
	}
}
