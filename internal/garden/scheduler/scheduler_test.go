package scheduler

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no garden":        {},
		"unknown strategy": {REST: &rest.Config{Host: "http://127.0.0.1:1"}, Strategy: "Dice"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestRunAndStop checks that two schedulers in one process both sync their caches, stop when the context ends, and
// leave no goroutines behind.
func TestRunAndStop(t *testing.T) {
	goroutinesEnded := testutil.Goroutines(t)
	server := httptest.NewServer(newEmptyGarden())
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for range 2 {
		s, err := New(Config{REST: &rest.Config{Host: server.URL}, Log: testr.New(t), LeaderElection: true})
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		testutil.EventuallyTrue(t, "the scheduler knows the garden", s.HasSynced)
	}
	cancel()
	group.Wait()
	server.Close()
	goroutinesEnded(testutil.Timeout)
}

// newEmptyGarden returns an API server with the scheduler's types, no objects, and one Lease.
func newEmptyGarden() http.Handler {
	g := &emptyGarden{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/core.gardener.cloud/v1beta1/{resource}", listNothing("core.gardener.cloud/v1beta1"))
	mux.HandleFunc("GET /api/v1/namespaces/garden/configmaps", listNothing("v1"))
	mux.HandleFunc("GET /apis/coordination.k8s.io/v1/namespaces/garden/leases/gardener-scheduler-leader-election", g.getLease)
	mux.HandleFunc("POST /apis/coordination.k8s.io/v1/namespaces/garden/leases", g.putLease)
	mux.HandleFunc("PUT /apis/coordination.k8s.io/v1/namespaces/garden/leases/gardener-scheduler-leader-election", g.putLease)
	mux.HandleFunc("POST /", g.echo) // events
	return mux
}

type emptyGarden struct {
	mutex sync.Mutex
	lease map[string]any
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func listNothing(groupVersion string) http.HandlerFunc {
	kinds := map[string]string{"shoots": "Shoot", "seeds": "Seed", "cloudprofiles": "CloudProfile",
		"namespacedcloudprofiles": "NamespacedCloudProfile", "projects": "Project", "": "ConfigMap"}
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") == "true":
			// Like a server without streaming lists, so that the client sends a list request.
			answer(w, http.StatusUnprocessableEntity, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: 422})
		case query.Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			answer(w, http.StatusOK, map[string]any{"kind": kinds[r.PathValue("resource")] + "List", "apiVersion": groupVersion,
				"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
		}
	}
}

func (g *emptyGarden) getLease(w http.ResponseWriter, r *http.Request) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.lease == nil {
		http.NotFound(w, r)
		return
	}
	answer(w, http.StatusOK, g.lease)
}

func (g *emptyGarden) putLease(w http.ResponseWriter, r *http.Request) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	lease := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&lease); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.lease = lease
	answer(w, http.StatusOK, lease)
}

func (g *emptyGarden) echo(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, http.StatusCreated, body)
}
