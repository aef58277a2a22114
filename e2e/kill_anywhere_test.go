package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// killedAnywhere requests random changes of a Shoot, one after the other, and kills the process after each:
// often before an earlier change is completed. When a change is completed, the Shoot has the machines that were
// requested last, and no Nodes of other machines.
func (l *landscape) killedAnywhere(t *testing.T, random *rand.Rand) {
	rounds := 4
	if testutil.Soaking() {
		rounds = 100
	}
	k := &killedShoot{l: l, random: random, s: &shoot{l: l, name: "anywhere"}}
	k.explains(t)
	w := &wishes{k: k, seed: "local", machines: 1}
	l.newShoot(t, k.s.name, func(spec map[string]any) {
		spec["seedName"] = w.seed
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["minimum"], worker["maximum"] = w.machines, w.machines
	})
	k.s.waitForSucceeded(t)
	k.client = clientOf(t, k.s.admin(t))
	keep(t, k.client)
	for range rounds {
		what, ask := w.next(k.random)
		k.disturb(t, what, 4*time.Second, func() { ask(t) })
		if k.random.IntN(3) > 0 {
			w.come(t)
		}
	}
	w.come(t)
	k.s.delete(t)
	k.s.waitGone(t)
}

// wishes are the requested properties of a Shoot.
type wishes struct {
	k                *killedShoot
	seed             string
	asleep, large    bool
	machines, second int // of the first pool and of the second one, which does not exist without machines
}

// next returns the next random change, and a function that requests it.
func (w *wishes) next(random *rand.Rand) (what string, ask func(*testing.T)) {
	switch n := random.IntN(10); {
	case n < 3:
		w.asleep = !w.asleep
		patch := fmt.Sprintf(`{"spec":{"hibernation":{"enabled":%t}}}`, w.asleep)
		return fmt.Sprintf("hibernation %t", w.asleep), func(t *testing.T) { w.change(t, patch) }
	case n < 5:
		w.large = !w.large
	case n < 6:
		w.machines = 1 + random.IntN(3)
	case n < 7:
		w.second = random.IntN(3)
	case n < 9:
		w.seed = map[string]string{"local": "local-2", "local-2": "local"}[w.seed]
		return "migration to " + w.seed, w.move
	default:
		operation := []string{"reconcile", "rotate-ssh-keypair", "rollout-workers=*"}[random.IntN(3)]
		if w.asleep {
			operation = "reconcile"
		}
		return operation, func(t *testing.T) { w.k.s.waitForSucceeded(t); w.k.s.operate(t, operation) }
	}
	return "pools " + w.pools(), func(t *testing.T) { w.change(t, `{"spec":{"provider":{"workers":`+w.pools()+`}}}`) }
}

func (w *wishes) pools() string {
	kind := "local"
	if w.large {
		kind = "local-large"
	}
	var pools []string
	add := func(name string, machines int) {
		if machines > 0 {
			pools = append(pools, fmt.Sprintf(`{"name":%q,"minimum":%d,"maximum":%[2]d,"maxSurge":1,"machine":{"type":%q,`+
				`"image":{"name":"local","version":"1.0.0"}},"zones":["local-a"]}`, name, machines, kind))
		}
	}
	add("worker", w.machines)
	add("second", w.second)
	return "[" + strings.Join(pools, ",") + "]"
}

// change patches the Shoot, as soon as that is allowed.
func (w *wishes) change(t *testing.T, patch string) {
	eventually(t, shootTimeout, func(context.Context) error {
		_, err := w.k.l.at("shoots", shootNamespace).Patch(t.Context(), w.k.s.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// move moves the Shoot to another seed, as soon as that is allowed.
func (w *wishes) move(t *testing.T) {
	eventually(t, shootTimeout, func(context.Context) error {
		obj := w.k.s.must(t)
		must(t, unstructured.SetNestedField(obj.Object, w.seed, "spec", "seedName"))
		_, err := w.k.l.at("shoots", shootNamespace).Update(t.Context(), obj, metav1.UpdateOptions{}, "binding")
		return err
	})
}

// come waits until the Shoot is as requested.
func (w *wishes) come(t *testing.T) {
	t.Helper()
	k, machines := w.k, w.machines+w.second
	if w.asleep {
		machines = 0
	}
	k.s.waitForSucceeded(t)
	k.s.expectSeed(t, w.seed)
	eventually(t, shootTimeout, func(context.Context) error {
		if names := k.s.machines(t); len(names) != machines {
			return fmt.Errorf("there are the machines %v, not %d", names, machines)
		}
		return nil
	})
	if !w.asleep {
		k.s.nodes(t, k.client, machines)
		isKept(t, k.client)
		k.s.healthy(t)
	}
}
