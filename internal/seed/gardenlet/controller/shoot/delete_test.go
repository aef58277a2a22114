package shoot

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDelete(t *testing.T) {
	for name, moves := range map[string]bool{"stays": false, "moves": true} {
		t.Run(name, func(t *testing.T) {
			state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			w := newWorld(t, aShoot(), aSeed(), state)
			w.settle()
			namespace, _ := w.inSeed()
			namespace.Finalizers = []string{"slow"}
			if err := w.seed.Update(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			if moves {
				w.change(func(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("b") })
			}
			// The deletion needs nothing of the garden except the Shoot.
			for _, obj := range []client.Object{aSeed(), &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "p"}},
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}}, w.shoot()} {
				if err := w.garden.Delete(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 {
				w.must(requeueWaiting)
				w.simulate()
			}
			w.expect(w.shoot().Status.LastOperation, "Delete", "Processing", w.shoot().Status.LastOperation.Progress,
				"Deleting Shoot namespace in Seed")
			written := len(w.told)
			w.must(requeueWaiting)
			namespace, cluster := w.inSeed()
			if namespace.DeletionTimestamp == nil || cluster.Name == "" || len(w.told) != written {
				t.Errorf("namespace %v, Cluster %q, told %+v", namespace.DeletionTimestamp, cluster.Name, w.told[written:])
			}
			namespace.Finalizers = nil
			if err := w.seed.Update(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			if w.must(0) != nil {
				t.Error("the Shoot is there")
			}
			if namespace, cluster := w.inSeed(); namespace.Name != "" || cluster.Name != "" {
				t.Errorf("left in the seed: %q, %q", namespace.Name, cluster.Name)
			}
			if err := w.garden.Get(t.Context(), client.ObjectKeyFromObject(state), state); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("ShootState: %v", err)
			}
			w.expect(&w.told[len(w.told)-1], "Delete", "Succeeded", 100, "")
		})
	}
}

// TestDeleteFails checks that objects that are left in the seed block the deletion of the Shoot, also if the operation
// has failed for good.
func TestDeleteFails(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.settle()
	if err := w.garden.Delete(t.Context(), w.shoot()); err != nil {
		t.Fatal(err)
	}
	w.before = func(cluster, verb string, _ client.Object) error {
		if cluster == "seed" && verb == "delete" {
			return errors.New("no way")
		}
		return nil
	}
	if _, err := w.reconcile(); err == nil {
		t.Error("no error")
	}
	w.expect(w.shoot().Status.LastOperation, "Delete", "Error", w.shoot().Status.LastOperation.Progress, "no way Operation will be retried.")
	w.clock.Step(retryDuration + time.Second)
	w.expect(w.must(0).Status.LastOperation, "Delete", "Failed", 0, "no way")
	w.before = nil
	w.must(0)
	if namespace, _ := w.inSeed(); w.shoot() == nil || namespace.Name == "" {
		t.Error("tried again although it has failed")
	}
	w.change(func(s *corev1beta1.Shoot) { s.Generation++ }) // as the garden does for a retry
	if w.settle() != nil {
		t.Error("the Shoot is there")
	}
}

// TestOfNamespace checks that a namespace is mapped to the Shoot whose technical ID is its name.
func TestOfNamespace(t *testing.T) {
	w := newWorld(t, aShoot(func(s *corev1beta1.Shoot) { s.Status.TechnicalID = id }), aSeed())
	for name, wanted := range map[string]int{id: 1, "other": 0} {
		if got := w.reconciler.ofNamespace(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); len(got) != wanted {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestForeignNamespace checks that a namespace of another Shoot is not changed.
// A Shoot whose finalizer another client has removed leaves nothing in the cache of botanists.
func TestForgetsDeletedShoots(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	w.must(requeueWaiting)
	if _, ok := w.reconciler.botanistCache.of(id); !ok {
		t.Fatal("no operation is in progress")
	}
	w.change(func(shoot *corev1beta1.Shoot) { shoot.Finalizers = nil })
	if err := w.garden.Delete(t.Context(), w.shoot()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if key, ok := w.reconciler.botanistCache.of(id); ok || len(w.reconciler.botanistCache.botanists) > 0 {
		t.Errorf("the cache still has Shoot %s", key)
	}
}

func TestForeignNamespace(t *testing.T) {
	w := newWorld(t, aShoot(), aSeed())
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id, Annotations: map[string]string{"shoot.gardener.cloud/uid": "other"}}}
	if err := w.seed.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err == nil {
		t.Error("no error")
	}
	if namespace, cluster := w.inSeed(); len(namespace.Labels) > 0 || cluster.Name != "" {
		t.Errorf("%v, %q", namespace.Labels, cluster.Name)
	}
}

func TestZones(t *testing.T) {
	settings := func(mode corev1beta1.ZoneSelectionMode) *corev1beta1.SeedSettings {
		return &corev1beta1.SeedSettings{ZoneSelection: &corev1beta1.SeedSettingZoneSelection{Mode: mode}}
	}
	for name, test := range map[string]struct {
		seed      []string
		settings  *corev1beta1.SeedSettings
		workers   []string
		pinned    []string
		tolerates corev1beta1.FailureToleranceType
		has       []string
		wanted    int
		contains  string
	}{
		"one":               {seed: []string{"a", "b", "c"}, wanted: 1},
		"stands nodes":      {seed: []string{"a", "b", "c"}, tolerates: "node", wanted: 1},
		"stands zones":      {seed: []string{"a", "b", "c", "d"}, tolerates: "zone", has: []string{"d"}, wanted: 3, contains: "d"},
		"too few":           {seed: []string{"a", "b"}, tolerates: "zone"},
		"keeps its own":     {seed: []string{"a", "b"}, has: []string{"gone"}, wanted: 1, contains: "gone"},
		"like its workers":  {seed: []string{"a", "b", "c"}, settings: settings("Prefer"), workers: []string{"c"}, wanted: 1, contains: "c"},
		"not preferred":     {seed: []string{"a", "b"}, settings: settings("Prefer"), workers: []string{"z"}, wanted: 1},
		"must be, is not":   {seed: []string{"a", "b"}, settings: settings("Enforce"), workers: []string{"z"}},
		"as its workers do": {seed: []string{"a", "b"}, workers: []string{"z"}, wanted: 1},
		"pinned": {seed: []string{"a", "b", "c"}, settings: settings("Enforce"), workers: []string{"a"}, pinned: []string{"c"},
			wanted: 1, contains: "c"},
		"pinned later":          {seed: []string{"a", "b"}, has: []string{"a"}, pinned: []string{"b"}, wanted: 1, contains: "a"},
		"pinned, stands zones":  {seed: []string{"a", "b", "c", "d"}, tolerates: "zone", pinned: []string{"d", "c", "b"}, wanted: 3, contains: "d"},
		"pinned to too few for": {seed: []string{"a", "b", "c"}, tolerates: "zone", pinned: []string{"a"}},
	} {
		a := &gardenData{seed: aSeed(), shoot: aShoot(func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Workers, s.Status.UID = []corev1beta1.Worker{{Zones: test.workers}}, "u"
			s.Spec.ControlPlane = &corev1beta1.ControlPlane{Zones: test.pinned}
		})}
		a.seed.Spec.Provider.Zones, a.seed.Spec.Settings = test.seed, test.settings
		got, err := chooseZones(a, test.tolerates, slices.Clone(test.has))
		again, _ := chooseZones(a, test.tolerates, slices.Clone(test.has))
		if (err == nil) != (test.wanted > 0) || len(got) != test.wanted || test.contains != "" &&
			!slices.Contains(got, test.contains) || !slices.Equal(got, again) {
			t.Errorf("%s: %v, %v, then %v", name, got, err, again)
		}
	}
}
