package shoot

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

var errKilled = errors.New("killed")

// attempt is like settle, but returns an error that ends a gardenlet.
func (w *world) attempt() error {
	for range 60 {
		after, err := w.reconcile()
		if err != nil {
			return err
		}
		if w.shoot() == nil || !waits(after) {
			return nil
		}
		w.simulate()
	}
	return errors.New("it does not end")
}

// killAfter makes a gardenlet fail after n writes.
func (w *world) killAfter(n int) {
	w.before = func(string, string, client.Object) error {
		if n--; n < 0 {
			return errKilled
		}
		return nil
	}
}

// TestSurvives kills each gardenlet after a few writes, so that the next one has to continue from there: with one write
// each, that is after every single write of the operation. The last gardenlet completes the operation as if nothing had
// happened.
func TestSurvives(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*world)
		check   func(t *testing.T, w *world, before map[string]string)
	}{
		"creation": {prepare: func(*world) {}, check: func(t *testing.T, w *world, _ map[string]string) {
			w.expect(w.shoot().Status.LastOperation, "Create", "Succeeded", 100, "")
		}},
		"rotation": {
			prepare: func(w *world) {
				w.settle()
				w.clock.Step(time.Minute)
				w.change(func(s *corev1beta1.Shoot) {
					s.Generation++
					s.Annotations = map[string]string{"gardener.cloud/operation": "rotate-credentials-start"}
				})
			},
			check: func(t *testing.T, w *world, before map[string]string) {
				w.expect(w.shoot().Status.LastOperation, "Reconcile", "Succeeded", 100, "")
				after := w.secrets()
				for _, name := range []string{"ca", "ca-client", "ca-front-proxy", "service-account-key", "ssh-keypair",
					"kube-apiserver-etcd-encryption-key"} {
					if after[name+".old"] != before[name] || after[name] == before[name] {
						t.Errorf("%s was rotated more than once, or not at all", name)
					}
				}
			},
		},
		"hibernation": {
			prepare: func(w *world) {
				w.settle()
				w.change(func(s *corev1beta1.Shoot) {
					s.Generation++
					s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: ptr.To(true)}
				})
			},
			check: func(t *testing.T, w *world, before map[string]string) {
				if got := w.secrets(); !maps.Equal(got, before) || !w.shoot().Status.IsHibernated || w.replicas("kube-apiserver") != 0 {
					t.Errorf("hibernated %t, %d replicas", w.shoot().Status.IsHibernated, w.replicas("kube-apiserver"))
				}
			},
		},
		"deletion": {
			prepare: func(w *world) {
				w.settle()
				if err := w.garden.Delete(w.Context(), w.shoot()); err != nil {
					w.Fatal(err)
				}
			},
			check: func(t *testing.T, w *world, _ map[string]string) {
				if namespace, cluster := w.inSeed(); w.shoot() != nil || namespace.Name != "" || cluster.Name != "" || w.fresh() != nil {
					t.Errorf("left: %v %q %q %v", w.shoot() != nil, namespace.Name, cluster.Name, w.fresh())
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, lives := range []int{1, 2, 5} {
				w := newWorld(t, aShoot(), aSeed())
				test.prepare(w)
				before := w.secrets()
				err := errKilled
				for n := 0; errors.Is(err, errKilled) && n < 300; n++ {
					if n%10 == 9 { // requests in the second in which the operation began are repeated in each life
						w.clock.Step(time.Second)
					}
					w.restart()
					w.killAfter(lives)
					err = w.attempt()
				}
				if err != nil {
					t.Fatalf("%d writes a life: %v", lives, err)
				}
				if test.check(t, w, before); t.Failed() {
					t.Fatalf("%d writes a life", lives)
				}
			}
		})
	}
}

// secrets returns checksums of the Shoot's secrets in the seed by their names.
func (w *world) secrets() map[string]string {
	w.Helper()
	list := &corev1.SecretList{}
	if err := w.seed.List(w.Context(), list, client.InNamespace(id), client.MatchingLabels{"persist": "true"}); err != nil {
		w.Fatal(err)
	}
	all := map[string]string{}
	for _, secret := range list.Items {
		all[secret.Name] = spec.Checksum(secret.Data)
	}
	return all
}

// fresh returns what is left in the seed, except what is deleted with its namespace.
func (w *world) fresh() []string {
	left := slices.DeleteFunc(w.left(), func(s string) bool { return s[:6] == "Secret" || s[:7] == "Service" })
	if len(left) == 0 {
		return nil
	}
	return left
}
