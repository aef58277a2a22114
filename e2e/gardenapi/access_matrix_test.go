package gardenapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	"github.com/gardenlite/gardenlite/internal/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leastRequests is how many requests the matrix has to make (issue "Scoped access").
const leastRequests = 20_000

// subresourcesOf returns the subresources that are tested: those of "Implemented Rules", and some that no rule
// names.
func subresourcesOf(resource string) []string {
	all := append([]string{""}, strings.Fields(rowFor(aGardenlet, resource).sub)...)
	more := map[string][]string{
		"shoots": {"binding", "adminkubeconfig", "viewerkubeconfig"}, "serviceaccounts": {"token"}, "namespaces": {"finalize", "status"},
		"certificatesigningrequests": {"approval", "status"}, "seeds": {"nonsense"}, "secrets": {"status"}, "projects": {"status"},
	}
	return append(all, more[resource]...)
}

// matrix is a pass over resource × verb × object × user.
type matrix struct {
	w        *accessWorld
	requests atomic.Int64
	mu       sync.Mutex
	wrong    []string
}

func (m *matrix) report(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// check makes the requests of a pass, and fails the test if one is not answered as "Implemented Rules" says.
func (m *matrix) check(t *testing.T, pass string, withSubresources bool) {
	t.Helper()
	before, start := m.requests.Load(), time.Now()
	bodies := m.bodies(t)
	const clients = 16
	work := make(chan func(context.Context), clients)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for ask := range work {
				ask(t.Context())
			}
		})
	}
	for _, o := range m.w.matrixObjects() {
		for _, who := range m.w.askers() {
			subs := subresourcesOf(o.resource)
			if !withSubresources {
				subs = subs[:1]
			}
			work <- func(ctx context.Context) { m.review(ctx, pass, who, o, subs) }
			if body := bodies[vertexName(o.resource, o.namespace, o.name)]; body != nil {
				work <- func(ctx context.Context) { m.try(ctx, pass, who, o, body) }
			}
		}
	}
	close(work)
	group.Wait()
	n, took := m.requests.Load()-before, time.Since(start)
	t.Logf("%s: %d requests in %s, %.0f a second", pass, n, took.Round(time.Millisecond), float64(n)/took.Seconds())
	slices.Sort(m.wrong)
	for _, wrong := range m.wrong[:min(len(m.wrong), 40)] {
		t.Error(wrong)
	}
	if len(m.wrong) > 0 {
		t.Errorf("%s: %d wrong answers", pass, len(m.wrong))
	}
	m.wrong = nil
}

// matrixObjects returns the existing objects, some that do not exist, and the requests that name no object.
func (w *accessWorld) matrixObjects() []accessObject {
	all := slices.Clone(w.objects)
	all = append(all, accessObject{"namespaces", "", "garden", ""}, accessObject{"configmaps", "kube-system", "cluster-identity", ""},
		accessObject{"secrets", "kube-system", bootstrapTokenOf("garden", w.a.name+"-s"), ""})
	for _, seed := range []string{w.a.name, w.b.name} {
		all = append(all, accessObject{"seeds", "", seed + "-t", ""},
			accessObject{"serviceaccounts", "garden", "gardenlet-bootstrap-" + seed, ""},
			accessObject{"clusterrolebindings", "", "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-" + seed, ""})
	}
	for resource := range accessResources {
		all = append(all, accessObject{resource, "", "", ""})
		if accessResources[resource].Namespaced {
			for _, namespace := range []string{"garden", "garden-" + w.name, "seed-" + w.a.name, "seed-" + w.b.name} {
				all = append(all, accessObject{resource, namespace, "", ""})
			}
		}
	}
	return all
}

// review asks whether a user is authorized.
func (m *matrix) review(ctx context.Context, pass string, who asker, o accessObject, subs []string) {
	for _, sub := range subs {
		for _, verb := range accessVerbs {
			r := accessRequest{verb: verb, resource: o.resource, sub: sub, namespace: o.namespace, name: o.name}
			m.requests.Add(1)
			got, why, err := who.may(ctx, r)
			if err != nil {
				m.report("%s: %s: %v", pass, who.Name, err)
				continue
			}
			if want := documentSays(who.kind, who.seed, m.w, r); got != want {
				m.report("%s: %s %s: authorized: %t, expected %t: %s", pass, who.Name, r, got, want, why)
			}
		}
	}
}

// try sends the request itself, for an existing object. Requests that change something are dry runs.
func (m *matrix) try(ctx context.Context, pass string, who asker, o accessObject, body map[string]any) {
	for _, verb := range accessVerbs {
		r := accessRequest{verb: verb, resource: o.resource, namespace: o.namespace, name: o.name}
		switch verb {
		case "create":
			r.body = fresh(body)
		case "update":
			r.body = body
		case "patch":
			r.body = map[string]any{}
		case "watch":
			continue // reviewed: it would last a second each
		}
		want := documentSays(who.kind, who.seed, m.w, r)
		if verb == "create" || verb == "deletecollection" {
			r.name = map[string]string{"deletecollection": o.name}[verb]
			named := r
			named.name = map[string]string{"create": "", "deletecollection": o.name}[verb]
			want = documentSays(who.kind, who.seed, m.w, named)
		}
		m.requests.Add(1)
		a, err := who.do(ctx, r)
		if err != nil {
			m.report("%s: %s %s: %v", pass, who.Name, r, err)
			continue
		}
		m.judge(pass, who, o, r, want, a)
	}
}

// judge compares an answer with the expected one. No user of a seed may change another seed's objects, whatever
// authorizes the request.
func (m *matrix) judge(pass string, who asker, o accessObject, r accessRequest, want bool, a answer) {
	reads := r.verb == "get" || r.verb == "list"
	switch {
	case a.NoOpinion() == want:
		m.report("%s: %s %s: %s, expected to be authorized: %t", pass, who.Name, r, a, want)
	case reads && want && !a.OK():
		m.report("%s: %s %s: %s", pass, who.Name, r, a)
	case !reads && a.OK() && o.of != "" && o.of != who.seed && !m.w.leads(o.resource, o.namespace, o.name, who.seed) && !everybodysLease(r):
		m.report("%s: %s %s: %s, and it is seed %s's", pass, who.Name, r, a, o.of)
	case !reads && a.OK() && !m.w.leads(o.resource, o.namespace, o.name, who.seed) && r.verb == "delete" &&
		!besides(who.kind, who.seed, m.w, r):
		m.report("%s: %s %s: %s, and it leads to no seed", pass, who.Name, r, a)
	}
}

func everybodysLease(r accessRequest) bool {
	return r.resource == "leases" && r.name == "gardenlet-leader-election"
}

// bodies returns the objects as the administrator reads them.
func (m *matrix) bodies(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, o := range m.w.objects {
		obj, err := m.w.at(o.resource, o.namespace).Get(t.Context(), o.name, metav1.GetOptions{})
		must(t, err)
		all[vertexName(o.resource, o.namespace, o.name)] = obj.Object
	}
	return all
}

// fresh returns a copy of an object as if it were new.
func fresh(object map[string]any) map[string]any {
	obj := (&unstructured.Unstructured{Object: object}).DeepCopy()
	obj.SetResourceVersion("")
	obj.SetUID("")
	obj.SetManagedFields(nil)
	return obj.Object
}

// TestAccessMatrix tries every verb on every object of two seeds as every user, before and after the landscape
// changes.
func TestAccessMatrix(t *testing.T) {
	w := newAccessWorld(t, "mx", suite.DataDir(), config)
	m := &matrix{w: w}
	w.settle(t)
	m.check(t, "at first", true)

	undo := w.move(t)
	w.settle(t)
	m.check(t, "shoots moved", testutil.Soaking())
	undo()
	w.settle(t)
	if testutil.Soaking() {
		m.check(t, "moved back", true)
	}

	again := w.removeSome(t)
	w.settle(t)
	m.check(t, "deleted", testutil.Soaking())
	again()
	w.settle(t)
	m.check(t, "created again", testutil.Soaking())
	if n := m.requests.Load(); n < leastRequests {
		t.Errorf("%d requests, expected at least %d", n, leastRequests)
	}
}

// settle waits until the graph has what the API server has: the rules allow to read and update what they should, and
// nothing else. Reading alone would not tell for kinds that a gardenlet reads without the graph.
func (w *accessWorld) settle(t *testing.T) {
	t.Helper()
	var last error // it tells more than the error of the deadline
	eventually(t, waitTimeout, func(ctx context.Context) error {
		err := w.compare(ctx, w.askers()[:2], "get", "update")
		if ctx.Err() != nil {
			return errors.Join(err, last)
		}
		last = err
		return err
	})
}
