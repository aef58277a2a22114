package graphsync

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestOverREST reads from a server that speaks the API's JSON: lists, watches, and the response of an older server to a
// streaming list.
func TestOverREST(t *testing.T) {
	events := make(chan any)
	api := fakeAPI{t: t, events: events, paths: map[string]string{}}
	for _, resource := range Resources() {
		path := "/apis/" + resource.GroupVersion().String() + "/" + resource.Resource
		if resource.Group == "" {
			path = "/api/v1/" + resource.Resource
		}
		api.paths[path] = resource.Kind.String()
	}
	server := httptest.NewTLSServer(&api)
	t.Cleanup(server.Close)
	g := newGarden(t)
	var err error
	g.syncer, err = New(Config{Graph: g.graph, Clock: g.clock, REST: &rest.Config{
		Host: server.URL, Timeout: time.Millisecond, // a timeout would end every watch, so it must be ignored
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}})
	if err != nil {
		t.Fatal(err)
	}
	g.synced()
	g.path(cloudProfile, "x", true)
	shoot := shootObject("listed", "y")
	shoot.APIVersion, shoot.Kind, shoot.ResourceVersion = "core.gardener.cloud/v1beta1", "Shoot", "2"
	select {
	case events <- map[string]any{"type": "MODIFIED", "object": shoot}:
	case <-time.After(testutil.Timeout):
		t.Fatal("shoots are not watched")
	}
	g.path(cloudProfile, "x", false)
	g.path(cloudProfile, "y", true)
	if g.graph.Has(graph.Vertex{Kind: graph.KindSeed, Name: "x"}) {
		t.Error("a seed that nothing refers to is left")
	}
}

type fakeAPI struct {
	t      *testing.T
	paths  map[string]string
	events chan any
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, query := f.paths[r.URL.Path], r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case kind == "" || r.Method != http.MethodGet || !strings.HasPrefix(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf"):
		f.t.Errorf("unexpected %s %s, Accept %s", r.Method, r.URL, r.Header.Get("Accept"))
		http.NotFound(w, r)
	case query.Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		})
	case query.Has("watch"):
		f.watch(w, r, kind)
	default:
		items := "[]"
		if kind == "Shoot" {
			content, err := json.Marshal(shootObject("listed", "x"))
			if err != nil {
				f.t.Error(err)
			}
			items = "[" + string(content) + "]"
		}
		groupVersion := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path[:strings.LastIndex(r.URL.Path, "/")], "/apis/"), "/api/")
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"1"},"items":%s}`, groupVersion, kind, items)
	}
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, kind string) {
	w.(http.Flusher).Flush()
	if kind != "Shoot" {
		<-r.Context().Done()
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-f.events:
			_ = json.NewEncoder(w).Encode(event)
			w.(http.Flusher).Flush()
		}
	}
}
