package cloud

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"testing"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardenlite/gardenlite/internal/bastionspec"
	"github.com/gardenlite/gardenlite/internal/component/shootowner"
)

// gardenOf has the Shoots by technical ID.
type gardenOf map[string]*corev1beta1.Shoot

func (g gardenOf) Shoot(_ context.Context, id string) (*corev1beta1.Shoot, error) { return g[id], nil }

func shootOn(seed, uid string) *corev1beta1.Shoot {
	return &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1beta1.ShootSpec{SeedName: &seed}}
}

// TestAccounts tries to use another seed's network and instances by their names.
func TestAccounts(t *testing.T) {
	const n = "shoot--dev--x"
	ctx, dir := t.Context(), t.TempDir()
	c := open(t, dir)
	g := gardenOf{n: shootOn("b", "1")}
	a, b := c.Account("a", g), c.Account("b", g)
	if err := a.EnsureNetwork(ctx, n, cidr); !errors.Is(err, shootowner.ErrForeign) {
		t.Errorf("the network of a Shoot on another seed, before it is there: %v", err)
	}
	if err := b.EnsureNetwork(ctx, n, cidr); err != nil {
		t.Fatal(err)
	}
	spec := InstanceSpec{ID: "m", Network: n, Public: &PublicSpec{}}
	if _, err := b.EnsureInstance(ctx, spec); err != nil {
		t.Fatal(err)
	}
	runs(t, c, "m")

	foreign := func(about string, a *Account) {
		t.Helper()
		if err := a.EnsureNetwork(ctx, n, cidr); !errors.Is(err, shootowner.ErrForeign) {
			t.Errorf("%s: EnsureNetwork: %v", about, err)
		}
		for _, id := range []string{"m", "m2"} {
			if _, err := a.EnsureInstance(ctx, InstanceSpec{ID: id, Network: n}); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: EnsureInstance %s: %v", about, id, err)
			}
		}
		if _, found := a.Instance("m"); found || len(a.Instances(n)) > 0 || a.Ready("m") != nil {
			t.Errorf("%s: it sees the instance", about)
		}
		if err := a.UpdateIngress(ctx, "m", bastionspec.Ingress{}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: UpdateIngress: %v", about, err)
		}
		if err := errors.Join(a.DeleteInstance(ctx, "m"), a.DeleteNetwork(ctx, n)); err != nil {
			t.Errorf("%s: %v", about, err)
		}
		if _, found := c.Instance("m"); !found {
			t.Fatalf("%s: the instance is gone", about)
		}
	}
	foreign("another seed", a)
	g[n].Spec.SeedName, g[n].Status.SeedName = nil, nil
	foreign("another seed, the Shoot being on none", a)
	if err := b.EnsureNetwork(ctx, n, cidr); err != nil {
		t.Errorf("the owner while the garden has the Shoot on no seed: %v", err)
	}

	// The Shoot migrates to a, and keeps its instances; a restart changes nothing.
	g[n] = shootOn("a", "1")
	foreign("the new seed, before it asks for the network", &Account{c, "c", g})
	if err := a.EnsureNetwork(ctx, n, cidr); err != nil {
		t.Fatal(err)
	}
	if _, found := a.Instance("m"); !found {
		t.Error("the new seed does not see the instance")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	runs(t, c, "m")
	b = c.Account("b", g)
	foreign("the former seed", b)

	// Another Shoot of the same name gets nothing of it.
	g[n] = shootOn("b", "2")
	if err := b.EnsureNetwork(ctx, n, netip.MustParsePrefix("10.9.0.0/24")); err != nil {
		t.Fatal(err)
	}
	if all := c.Instances(n); len(all) > 0 {
		t.Errorf("a new Shoot gets %v", all)
	}
}

// TestAdopt opens a cloud whose networks have no owner, as they had before there were accounts.
func TestAdopt(t *testing.T) {
	const n = "shoot--dev--x"
	dir := t.TempDir()
	c := open(t, dir)
	newNetwork(t, c, n)
	newNetwork(t, c, "shoot--dev--gone")
	ensure(t, c, InstanceSpec{ID: "m", Network: n})
	if _, found := c.Account("a", nil).Instance("m"); !found {
		t.Error("without a garden, the instance is hidden")
	}
	g := gardenOf{n: shootOn("a", "1")}
	if err := c.Adopt(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	var r networkRecord
	if err := readJSON(filepath.Join(dir, "networks", n+".json"), &r); err != nil || r.Owner != (shootowner.Owner{Seed: "a", Shoot: "1"}) {
		t.Errorf("recorded: %+v, %v", r, err)
	}
	for seed, want := range map[string]bool{"a": true, "b": false} {
		if _, found := c.Account(seed, g).Instance("m"); found != want {
			t.Errorf("seed %s sees the instance: %t", seed, found)
		}
	}
}
