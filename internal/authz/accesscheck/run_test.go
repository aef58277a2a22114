package accesscheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// fakeGarden stores the objects that the administrator creates, and refuses all requests of attackers except the
// controls.
type fakeGarden struct {
	*testing.T
	mu      sync.Mutex
	objects map[string]object // by their paths
	changed []string          // the administrator's writes
	closed  chan struct{}     // closed when the Seed is patched, to end watches

	answer   func(r *http.Request) (code int, body object) // the response to an attacker; the usual one if the code is 0
	failPath string                                        // the administrator must not create objects here
	deafened bool                                          // watches do not end
}

func newGarden(t *testing.T) *fakeGarden {
	seed := func(name string) object {
		return meta("core.gardener.cloud/v1beta1", "Seed", "", name, object{"spec": object{
			"provider": object{"type": "local"},
			"backup":   object{"credentialsRef": object{"kind": "Secret", "namespace": garden, "name": name + "-backup"}}}})
	}
	objects := map[string]object{core + "/seeds/local": seed("local")}
	return &fakeGarden{T: t, objects: objects, closed: make(chan struct{})}
}

func (g *fakeGarden) run(ctx context.Context, live bool) (*Report, error) {
	server := httptest.NewServer(g)
	g.Cleanup(server.Close)
	all := slices.DeleteFunc(catalogue(), func(a attack) bool { return a.kind == 12 }) // asks for certificates
	return run(ctx, Options{Admin: &rest.Config{Host: server.URL}, Live: live, watchEnds: 50 * time.Millisecond}, all)
}

func (g *fakeGarden) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body object
	_ = json.NewDecoder(r.Body).Decode(&body)
	var code int
	var out object
	switch attacker := r.Header.Get("Impersonate-User") != ""; {
	case attacker && r.URL.Query().Get("watch") == "true" && strings.Contains(r.URL.RawQuery, namePrefix):
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		select {
		case <-g.closed:
		case <-r.Context().Done():
		}
		return
	case attacker:
		code, out = g.toAttacker(r, body)
	default:
		code, out = g.toAdmin(r, body)
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out)
}

func forbidden(message string) (int, object) {
	return http.StatusForbidden, object{"kind": "Status", "message": message}
}

var ownShoots = regexp.MustCompile(`^name\.seed\.gardener\.cloud/` + namePrefix + `[a-z0-9]+=true$`)

func (g *fakeGarden) toAttacker(r *http.Request, body object) (int, object) {
	isReview := r.URL.Path == reviews
	if r.Method != http.MethodGet && !isReview && r.URL.Query().Get("dryRun") != "All" {
		g.Errorf("%s %s is no dry run", r.Method, r.URL)
	}
	if g.answer != nil {
		if code, out := g.answer(r); code != 0 {
			return code, out
		}
	}
	switch {
	case isReview:
		name := body["spec"].(object)["resourceAttributes"].(object)["name"].(string)
		own := strings.HasPrefix(name, namePrefix) || strings.Contains(name, "-4") // or a UID
		status := object{"allowed": own, "reason": "about " + name}
		return http.StatusCreated, object{"kind": "SelfSubjectAccessReview", "status": status}
	case r.URL.Path == core+"/shoots" && ownShoots.MatchString(r.URL.Query().Get("labelSelector")),
		strings.Contains(r.URL.Path, "/garden/secrets/"+namePrefix) && r.Method == http.MethodGet:
		return http.StatusOK, object{}
	}
	return forbidden("x cannot do that")
}

func (g *fakeGarden) toAdmin(r *http.Request, body object) (int, object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method != http.MethodGet {
		g.changed = append(g.changed, r.Method+" "+r.URL.Path)
	}
	switch r.Method {
	case http.MethodPost:
		if r.URL.Path == g.failPath {
			return forbidden("not now")
		}
		name := body["metadata"].(object)["name"].(string)
		body["metadata"].(object)["uid"] = newUID()
		g.objects[r.URL.Path+"/"+name] = body
		return http.StatusCreated, body
	case http.MethodDelete:
		delete(g.objects, r.URL.Path)
		return http.StatusOK, object{}
	case http.MethodPatch:
		if spec, ok := body["spec"].(object); ok && !g.deafened && spec["resources"] == nil {
			close(g.closed)
		}
		return http.StatusOK, object{}
	}
	if o := g.objects[r.URL.Path]; o != nil {
		return http.StatusOK, o
	}
	if strings.Contains(path.Base(r.URL.Path), "-") {
		return http.StatusNotFound, object{"kind": "Status", "message": "not found"}
	}
	items := []object{}
	for at, o := range g.objects {
		labels, _ := o["metadata"].(object)["labels"].(object)
		if path.Dir(at) == r.URL.Path && (r.URL.Query().Get("labelSelector") == "" || labels[label] == "true") {
			items = append(items, o)
		}
	}
	return http.StatusOK, object{"items": items}
}

// expectOnly fails unless only the initial objects are left. The deletion of a Namespace deletes its objects.
func (g *fakeGarden) expectOnly() {
	g.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for at := range g.objects {
		if strings.Contains(at, "/namespaces/seed-"+namePrefix) && strings.HasSuffix(at, "/serviceaccounts/"+extension) {
			delete(g.objects, at)
		}
	}
	if left := slices.Collect(maps.Keys(g.objects)); len(left) != 1 || left[0] != core+"/seeds/local" {
		g.Errorf("left: %v", left)
	}
}

func TestOutcomes(t *testing.T) {
	to := func(method, part string, code int) func(*http.Request) (int, object) {
		return func(r *http.Request) (int, object) {
			if r.Method == method && strings.Contains(r.URL.Path, part) {
				return code, object{"kind": "Status", "message": "as the test says"}
			}
			return 0, nil
		}
	}
	for _, test := range []struct {
		name   string
		answer func(*http.Request) (int, object)
		counts map[Outcome]int // without refused and skipped attacks
		holds  bool
	}{
		{"all is refused", nil, map[Outcome]int{Allowed: 3}, true},
		{"one succeeds", to(http.MethodDelete, "/seeds/local", 200), map[Outcome]int{Allowed: 3, Open: 1}, false},
		{"one with an error", to(http.MethodDelete, "/seeds/local", 500), map[Outcome]int{Allowed: 3, Undecided: 1}, false},
		{"not found", to(http.MethodDelete, "/seeds/local", 404), map[Outcome]int{Allowed: 3, Undecided: 1}, false},
		{"refused for another reason", to(http.MethodDelete, "/seeds/local", 403), map[Outcome]int{Allowed: 3}, true},
		{"controls do not work", to(http.MethodGet, core+"/shoots", 403), map[Outcome]int{Allowed: 1, Undecided: 2}, false},
		{"a ConfigMap that exists is told", func(r *http.Request) (int, object) {
			if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/kube-system/configmaps") {
				return http.StatusConflict, object{"message": "exists"}
			}
			return 0, nil
		}, map[Outcome]int{Allowed: 3, Undecided: 1}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newGarden(t)
			g.answer = test.answer
			report, err := g.run(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			for _, outcome := range []Outcome{Open, Allowed, Undecided} {
				if report.Counts[outcome] != test.counts[outcome] {
					t.Errorf("%d are %s, expected %d", report.Counts[outcome], outcome, test.counts[outcome])
				}
			}
			if report.Holds() != test.holds || report.Counts[Refused] < 30 || report.Victim != "local" {
				t.Errorf("holds: %t, %d refused, of seed %q", report.Holds(), report.Counts[Refused], report.Victim)
			}
			g.expectOnly()
		})
	}
}

// TestExistenceIsTold checks that a different response for an existing object is reported as Open.
func TestExistenceIsTold(t *testing.T) {
	g, asked := newGarden(t), 0
	g.answer = func(r *http.Request) (int, object) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/garden/secrets") {
			if asked++; asked == 1 {
				return http.StatusConflict, object{"message": "exists"}
			}
		}
		return 0, nil
	}
	report, err := g.run(t.Context(), true)
	if err != nil || report.Counts[Open] != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestWatchThatStays(t *testing.T) {
	g := newGarden(t)
	g.deafened = true
	report, err := g.run(t.Context(), true)
	if err != nil || report.Counts[Open] != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	g.expectOnly()
}

// TestCleanUp checks that no objects are left if a check is interrupted or fails, and that a check removes the objects
// of an earlier one that was killed.
func TestCleanUp(t *testing.T) {
	t.Run("interrupted", func(t *testing.T) {
		g := newGarden(t)
		ctx, cancel := context.WithCancel(t.Context())
		g.answer = func(*http.Request) (int, object) { cancel(); return 0, nil }
		if _, err := g.run(ctx, true); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		g.expectOnly()
	})
	for _, failing := range []string{core + "/seeds", "/api/v1/namespaces", core + "/namespaces/garden/backupentries"} {
		t.Run(failing, func(t *testing.T) {
			g := newGarden(t)
			g.failPath = failing
			if _, err := g.run(t.Context(), true); err == nil || !strings.Contains(err.Error(), "not now") {
				t.Error(err)
			}
			g.expectOnly()
		})
	}
	t.Run("killed before", func(t *testing.T) {
		g := newGarden(t)
		for i, resource := range []string{core + "/seeds", inGarden + "/secrets", "/api/v1/namespaces"} {
			name := fmt.Sprint(namePrefix, "old", i)
			g.objects[resource+"/"+name] = labelled(meta("v1", "X", "", name, nil))
		}
		if _, err := g.run(t.Context(), true); err != nil {
			t.Error(err)
		}
		g.expectOnly()
	})
}

// TestElsewhere checks that without Live the administrator changes nothing, and attacks with a throwaway seed are
// skipped.
func TestElsewhere(t *testing.T) {
	g := newGarden(t)
	report, err := g.run(t.Context(), false)
	if err != nil || !report.Holds() || report.Counts[Refused] < 20 || report.Counts[Skipped] < 10 {
		t.Fatalf("%+v, %v", report, err)
	}
	if len(g.changed) > 0 {
		t.Errorf("the administrator changed %v", g.changed)
	}
	g.expectOnly()
	for _, r := range report.Results {
		if (r.Outcome == Skipped) != (r.Request == "") || r.Outcome == Skipped && r.Answer == "" {
			t.Errorf("%+v", r)
		}
	}
}

func TestNoVictim(t *testing.T) {
	g := newGarden(t)
	clear(g.objects)
	if _, err := g.run(t.Context(), true); err == nil || !strings.Contains(err.Error(), "no Seed") {
		t.Error(err)
	}
}

// TestCatalogue checks that the catalogue has every kind of attack, and that each attack can be tried.
func TestCatalogue(t *testing.T) {
	kinds, w := map[int]bool{}, &world{seed: "a", victim: "b", live: true}
	for _, a := range catalogue() {
		kinds[a.kind] = true
		tried := a.request != nil || a.try != nil || !a.needs[0].met(w)
		if a.name == "" || a.as == "" || a.request != nil && a.try != nil || !tried {
			t.Errorf("%+v", a)
		}
	}
	for kind := range 13 {
		if !kinds[kind] {
			t.Errorf("no attack of kind %d", kind)
		}
	}
}
