package gardenapi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	accessWriters = 50
)

// changingEdge is an edge to seed a that a writer makes and takes away again. Users of a are allowed the prize
// through it.
type changingEdge struct {
	make, take func(context.Context) error
	prize      accessRequest
}

// TestAccessWhileWriting checks requests while writers change the landscape: without its edge a prize becomes
// refused (in the soak, within a second), objects of a stay allowed, and those of b are never allowed.
func TestAccessWhileWriting(t *testing.T) {
	w := newAccessWorld(t, "wr", suite.DataDir(), config)
	w.settle(t)
	w.createNeutralBinding(t)
	edges := make([]changingEdge, accessWriters)
	for i := range edges {
		edges[i] = w.changingEdge(t, i)
	}
	rounds, seen := 4, &delays{staleAfter: waitTimeout}
	if testutil.Soaking() {
		rounds, seen.staleAfter = 100, time.Second
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers, reviewers sync.WaitGroup
	for _, edge := range edges {
		writers.Go(func() { w.changeAndReview(t, edge, rounds, seen) })
	}
	reviewed := make([]int, 4)
	for i := range reviewed {
		reviewers.Go(func() { reviewed[i] = w.reviewUnaffected(ctx, t, i) })
	}
	writers.Wait()
	cancel()
	reviewers.Wait()
	gone, come := seen.sorted()
	if len(gone) < rounds*accessWriters {
		t.Fatalf("only %d edges were taken away", len(gone))
	}
	t.Logf("%d edges made and taken by %d writers, and %v checks of what stays; refused %s after an edge had gone "+
		"(median), at most %s; allowed %s after it came (median), at most %s",
		len(gone), accessWriters, reviewed, gone[len(gone)/2], gone[len(gone)-1], come[len(come)/2], come[len(come)-1])
}

// delays are the times until changes show in answers.
type delays struct {
	staleAfter time.Duration // how long a prize may stay allowed without its edge
	mu         sync.Mutex
	gone, come []time.Duration
}

func (d *delays) add(come, gone time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.come, d.gone = append(d.come, come.Round(time.Microsecond)), append(d.gone, gone.Round(time.Microsecond))
}

func (d *delays) sorted() (gone, come []time.Duration) {
	slices.Sort(d.gone)
	slices.Sort(d.come)
	return d.gone, d.come
}

// changeAndReview makes and takes an edge again and again.
func (w *accessWorld) changeAndReview(t *testing.T, edge changingEdge, rounds int, seen *delays) {
	for range rounds {
		if err := edge.make(t.Context()); err != nil {
			t.Errorf("making an edge for %s: %v", edge.prize, err)
			return
		}
		come, ok := w.until(t, edge.prize, true, waitTimeout)
		if err := edge.take(t.Context()); err != nil {
			t.Errorf("taking the edge for %s away: %v", edge.prize, err)
			return
		}
		gone, gotten := w.until(t, edge.prize, false, seen.staleAfter)
		if !ok || !gotten {
			return
		}
		seen.add(come, gone)
	}
}

// until reviews a request until the answer is as wanted, and returns how long after the change that review began.
// The test fails if the answer is still wrong after timeout.
func (w *accessWorld) until(t *testing.T, prize accessRequest, want bool, timeout time.Duration) (time.Duration, bool) {
	begin := time.Now()
	for {
		after := time.Since(begin)
		got, why, err := w.gardenletA.may(t.Context(), prize)
		switch {
		case err != nil:
			t.Errorf("%s: %v", prize, err)
			return 0, false
		case got == want:
			return after, true
		case after > timeout:
			t.Errorf("%s: allowed: %t, %s after that has changed: %s", prize, got, after, why)
			return after, false
		}
	}
}

// reviewUnaffected reviews requests that no writer affects, and returns how many.
func (w *accessWorld) reviewUnaffected(ctx context.Context, t *testing.T, first int) (reviewed int) {
	for i := first; ctx.Err() == nil; i++ {
		o := w.objects[i%len(w.objects)]
		for _, who := range w.askers() {
			r := accessRequest{verb: "get", resource: o.resource, namespace: o.namespace, name: o.name}
			got, why, err := who.may(t.Context(), r)
			reviewed++
			if want := documentSays(who.kind, who.seed, w, r); err != nil || got != want {
				t.Errorf("%s %s: authorized: %t, expected %t: %s %v", who.Name, r, got, want, why, err)
				return reviewed
			}
		}
	}
	return reviewed
}

// changingEdge returns the edge of a writer, of five kinds in turn.
func (w *accessWorld) changingEdge(t *testing.T, i int) changingEdge {
	t.Helper()
	name := fmt.Sprintf("%s-w%d", w.name, i)
	switch i % 5 {
	case 0: // a ControllerInstallation comes and goes, and with it what it deploys
		deployment := meta("core.gardener.cloud/v1", "ControllerDeployment", "", name,
			map[string]any{"helm": map[string]any{"ociRepository": map[string]any{"ref": "registry.example.com/chart:v1.0.0"}}})
		_, err := w.at("controllerdeployments", "").Create(t.Context(), &unstructured.Unstructured{Object: deployment}, created)
		must(t, err)
		return w.comesAndGoes(meta("core.gardener.cloud/v1beta1", "ControllerInstallation", "", name, map[string]any{"spec": map[string]any{
			"registrationRef": map[string]any{"name": w.name}, "seedRef": map[string]any{"name": w.a.name},
			"deploymentRef": map[string]any{"name": name}}}),
			reading("controllerdeployments", "", name))
	case 1: // a BackupBucket, and its credentials
		createSecretIn(t, w, "garden", name)
		return w.comesAndGoes(bucketObject(name, w.a.name, name), reading("secrets", "garden", name))
	case 2: // a request for a certificate
		return w.comesAndGoes(requestObject(t, name, w.a.name), reading("certificatesigningrequests", "", name))
	case 3: // what a Shoot refers to
		createSecretIn(t, w, w.project(), name)
		w.anotherShoot(t, name)
		return w.refers(name)
	default: // a Shoot moves
		w.anotherShoot(t, name)
		return w.moves(name)
	}
}

func createSecretIn(t *testing.T, w *accessWorld, namespace, name string) {
	t.Helper()
	_, err := w.at("secrets", namespace).Create(t.Context(), &unstructured.Unstructured{Object: secretObject(namespace, name, "")}, created)
	must(t, err)
}

func (w *accessWorld) comesAndGoes(object map[string]any, prize accessRequest) changingEdge {
	obj := &unstructured.Unstructured{Object: object}
	client := w.at(resourceOf(obj.GetKind()), obj.GetNamespace())
	return changingEdge{
		make: func(ctx context.Context) error {
			_, err := client.Create(ctx, obj.DeepCopy(), created)
			return err
		},
		take: func(ctx context.Context) error {
			return client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
		},
		prize: prize,
	}
}

// neutral is the name of the binding, and of the Secret, of shoots that move: what they share with others must not
// move.
const neutral = "neutral"

func (w *accessWorld) createNeutralBinding(t *testing.T) {
	t.Helper()
	secret := &unstructured.Unstructured{Object: secretObject(w.project(), neutral, "")}
	secret.SetLabels(map[string]string{"provider.shoot.gardener.cloud/local": "true"})
	ref := map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": w.project(), "name": neutral}
	binding := meta("security.gardener.cloud/v1alpha1", "CredentialsBinding", w.project(), neutral,
		map[string]any{"provider": map[string]any{"type": "local"}, "credentialsRef": ref})
	for _, obj := range []*unstructured.Unstructured{secret, {Object: binding}} {
		_, err := w.at(resourceOf(obj.GetKind()), w.project()).Create(t.Context(), obj, created)
		must(t, err)
	}
}

// anotherShoot creates a Shoot like a's first one, without references of its own.
func (w *accessWorld) anotherShoot(t *testing.T, name string) {
	t.Helper()
	shoots := w.at("shoots", w.project())
	obj, err := shoots.Get(t.Context(), w.a.name, metav1.GetOptions{})
	must(t, err)
	shoot := &unstructured.Unstructured{Object: withoutStatus(fresh(obj.Object))}
	shoot.SetName(name)
	for _, field := range [][]string{{"resources"}, {"dns"}, {"kubernetes", "kubeAPIServer", "auditConfig"}} {
		unstructured.RemoveNestedField(shoot.Object, append([]string{"spec"}, field...)...)
	}
	must(t, unstructured.SetNestedMap(shoot.Object, map[string]any{"kind": "CloudProfile", "name": "local"}, "spec", "cloudProfile"))
	must(t, unstructured.SetNestedField(shoot.Object, neutral, "spec", "credentialsBindingName"))
	_, err = shoots.Create(t.Context(), shoot, created)
	must(t, err)
}

func (w *accessWorld) patchShoot(ctx context.Context, name, patch string, sub ...string) error {
	_, err := w.at("shoots", w.project()).Patch(ctx, name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, sub...)
	return err
}

func (w *accessWorld) refers(name string) changingEdge {
	patch := func(resources string) func(context.Context) error {
		return func(ctx context.Context) error {
			return w.patchShoot(ctx, name, `{"spec":{"resources":`+resources+`}}`)
		}
	}
	return changingEdge{
		make:  patch(fmt.Sprintf(`[{"name":"secret","resourceRef":{"apiVersion":"v1","kind":"Secret","name":%q}}]`, name)),
		take:  patch("null"),
		prize: reading("secrets", w.project(), name),
	}
}

func (w *accessWorld) moves(name string) changingEdge {
	to := func(seed string) func(context.Context) error {
		return func(ctx context.Context) error {
			shoot, err := w.at("shoots", w.project()).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if on, _, _ := unstructured.NestedString(shoot.Object, "spec", "seedName"); on != seed {
				if err := w.bind(ctx, w.project(), name, seed); err != nil {
					return err
				}
			}
			return w.patchShoot(ctx, name, fmt.Sprintf(`{"status":{"seedName":%q}}`, seed), "status")
		}
	}
	return changingEdge{make: to(w.a.name), take: to(w.b.name), prize: reading("secrets", w.project(), name+".monitoring")}
}
