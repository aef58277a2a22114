package gardenapi

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestAccessRandomRequests writes random objects of seed b, and objects of seed a with one name replaced by b's, as
// users of a: no object of b is changed, and none comes to be referred to. All requests are dry runs.
func TestAccessRandomRequests(t *testing.T) {
	w := newAccessWorld(t, "rr", suite.DataDir(), config)
	w.settle(t)
	count, random := 1000, rand.New(rand.NewPCG(1, 2))
	if testutil.Soaking() {
		seed := rand.Uint64()
		t.Logf("the seed of the random requests is %d", seed)
		count, random = 100_000, rand.New(rand.NewPCG(seed, 2))
	}
	var objects []accessObject
	bodies := map[string]map[string]any{}
	for _, o := range w.objects {
		if o.of == "" || o.resource == "certificatesigningrequests" {
			continue
		}
		obj, err := w.at(o.resource, o.namespace).Get(t.Context(), o.name, metav1.GetOptions{})
		must(t, err)
		objects, bodies[vertexName(o.resource, o.namespace, o.name)] = append(objects, o), obj.Object
	}
	var group errgroup.Group
	group.SetLimit(8)
	for i := range count {
		if i%10_000 == 9999 {
			t.Logf("%d requests", i+1)
		}
		o := objects[random.IntN(len(objects))]
		body := bodies[vertexName(o.resource, o.namespace, o.name)]
		verb := []string{"create", "update", "delete"}[random.IntN(3)]
		if o.of == w.a.name {
			verb, body = "update", w.mixed(t, random, body)
		}
		group.Go(func() error {
			w.tryRandom(t, verb, o, body)
			return nil
		})
	}
	must(t, group.Wait())
}

// mixed returns an object of a with one of the names in its specification replaced by that of b.
func (w *accessWorld) mixed(t *testing.T, random *rand.Rand, object map[string]any) map[string]any {
	t.Helper()
	mixed := (&unstructured.Unstructured{Object: object}).DeepCopy().Object
	for _, field := range []string{"spec", "secretRef", "credentialsRef", "helm", "secrets", "subjects"} {
		if mixed[field] == nil {
			continue
		}
		data, err := json.Marshal(mixed[field])
		must(t, err)
		parts := strings.Split(string(data), w.a.name)
		if len(parts) < 2 {
			continue
		}
		at := 1 + random.IntN(len(parts)-1)
		text := strings.Join(parts[:at], w.a.name) + w.b.name + strings.Join(parts[at:], w.a.name)
		var changed any
		must(t, json.Unmarshal([]byte(text), &changed))
		mixed[field] = changed
	}
	return mixed
}

func (w *accessWorld) tryRandom(t *testing.T, verb string, o accessObject, body map[string]any) {
	t.Helper()
	r := accessRequest{verb: verb, resource: o.resource, namespace: o.namespace, name: o.name, body: body}
	switch verb {
	case "create":
		r.body, r.name = fresh(body), ""
	case "delete":
		r.body = nil
	}
	for _, who := range []*accessUser{w.gardenletA, w.extensionA} {
		a, err := who.do(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %s: %v", who.Name, r, err)
			continue
		}
		if !a.OK() || everybodysLease(r) {
			continue
		}
		if o.of != w.a.name && !w.leads(o.resource, o.namespace, o.name, w.a.name) {
			t.Errorf("%s: %s: %s, and it is seed b's", who.Name, r, a)
		}
		var written map[string]any
		if err := json.Unmarshal(a.Body, &written); err != nil {
			t.Errorf("%s: %s: %v", who.Name, r, err)
		}
		for _, field := range []string{"spec", "secretRef", "credentialsRef", "helm", "secrets", "subjects"} {
			if data, _ := json.Marshal(written[field]); o.of == w.a.name && strings.Contains(string(data), w.b.name) {
				t.Errorf("%s: %s: %s: it refers to what is b's: %s", who.Name, r, a, data)
			}
		}
	}
}
