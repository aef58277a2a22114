package landscape

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

func vertex(kind graph.Kind, namespace, name string) graph.Vertex {
	return graph.Vertex{Kind: kind, Namespace: namespace, Name: name}
}

// snapshotOf makes a graph of edges, with vertices in order.
func snapshotOf(edges ...graph.Edge) graph.Snapshot {
	s := graph.Snapshot{Edges: edges}
	for _, e := range edges {
		for _, v := range []graph.Vertex{e.From, e.To} {
			if !slices.ContainsFunc(s.Vertices, func(w graph.SnapshotVertex) bool { return w.Vertex == v }) {
				s.Vertices = append(s.Vertices, graph.SnapshotVertex{Vertex: v, Exists: v.Kind != graph.KindSecret})
			}
		}
	}
	slices.SortFunc(s.Vertices, func(a, b graph.SnapshotVertex) int { return a.Compare(b.Vertex) })
	slices.SortFunc(s.Edges, graph.Edge.Compare)
	return s
}

var (
	seedA   = vertex(graph.KindSeed, "", "a")
	shoot   = vertex(graph.KindShoot, "garden-dev", "s")
	binding = vertex(graph.KindSecretBinding, "garden-dev", "b")
	secret  = vertex(graph.KindSecret, "garden-dev", "<b>&\"")
	profile = vertex(graph.KindCloudProfile, "", "local")
	chain   = func() graph.Snapshot {
		return snapshotOf(graph.Edge{From: secret, To: binding}, graph.Edge{From: binding, To: shoot},
			graph.Edge{From: shoot, To: seedA}, graph.Edge{From: profile, To: shoot})
	}
)

func TestGraphText(t *testing.T) {
	p := newPart(chain())
	selected, err := p.selected(GraphFilter{Kind: "secretbinding", Namespace: "garden-*", Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.writeText(&out, selected, true); err != nil {
		t.Fatal(err)
	}
	const want = `SecretBinding garden-dev/b
  → Shoot garden-dev/s
    → Seed a
  ← Secret garden-dev/<b>&"
1 of 5 objects, 4 edges in all
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
	if part := p.around(selected, true); len(part.Vertices) != 4 || len(part.Edges) != 3 {
		t.Errorf("around the binding are %v", part)
	}
	var usage *UsageError
	if _, err := p.selected(GraphFilter{Kind: "Nonsense"}); !errors.As(err, &usage) {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestTextOfCycleEnds(t *testing.T) {
	p := newPart(snapshotOf(graph.Edge{From: shoot, To: binding}, graph.Edge{From: binding, To: shoot}))
	var out bytes.Buffer
	if err := p.writeText(&out, p.Vertices[:1], true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "see above") {
		t.Errorf("got:\n%s", out.String())
	}
	if way := p.farthest(shoot); len(way) != 2 {
		t.Errorf("the way is %v", way)
	}
}

func TestFarthest(t *testing.T) {
	s := snapshotOf(graph.Edge{From: secret, To: binding}, graph.Edge{From: binding, To: shoot})
	if way := newPart(s).farthest(secret); !slices.Equal(way, []graph.Vertex{secret, binding, shoot}) {
		t.Errorf("the way is %v", way)
	}
}

// TestDrawingIsXML has names that are markup, and reads the drawing again.
func TestDrawingIsXML(t *testing.T) {
	var out bytes.Buffer
	if err := writeSVG(&out, chain(), nil, false); err != nil {
		t.Fatal(err)
	}
	texts := ""
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, out.String())
		}
		if data, ok := token.(xml.CharData); ok {
			texts += string(data)
		}
	}
	if !strings.Contains(texts, `garden-dev/<b>&"`) {
		t.Errorf("the Secret's name is not in %s", texts)
	}
}

// TestDrawingOfAnyGraph draws random graphs, cycles among them: always the same, no boxes over each other, and edges from
// left to right where there is no cycle.
func TestDrawingOfAnyGraph(t *testing.T) {
	first := testutil.Seed(t)
	for seed := first; seed < first+50; seed++ {
		random := rand.New(rand.NewPCG(seed, 1))
		cyclic := seed%5 == 0
		var edges []graph.Edge
		kinds := graph.Kinds()
		at := func(i int) graph.Vertex { return vertex(kinds[i%len(kinds)], "", fmt.Sprint("v", i)) }
		for range 10 + random.IntN(80) {
			from, to := 1+random.IntN(39), random.IntN(40)
			if !cyclic {
				to = random.IntN(from)
			}
			edges = append(edges, graph.Edge{From: at(from), To: at(to)})
		}
		edges = slices.CompactFunc(edges, func(a, b graph.Edge) bool { return a == b })
		s := snapshotOf(edges...)
		l := newLayout(s)
		l.order()
		l.place()
		for c, column := range l.columns {
			for i := 1; i < len(column.points); i++ {
				gap := l.points[column.points[i]].y - l.points[column.points[i-1]].y
				if gap < l.distance(column.points, i)-0.01 {
					t.Fatalf("graph %d: points of column %d overlap: %f apart", seed, c, gap)
				}
			}
		}
		for _, e := range l.edges {
			if !cyclic && l.points[e[0]].column <= l.points[e[len(e)-1]].column {
				t.Fatalf("graph %d: an edge goes back", seed)
			}
		}
		var first, second bytes.Buffer
		if err := errors.Join(writeSVG(&first, snapshotOf(edges...), nil, false), writeSVG(&second, snapshotOf(edges...), nil, false)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("graph %d is drawn in two ways", seed)
		}
	}
}

func TestResolve(t *testing.T) {
	all := []served{
		servedFor("", "v1", "secrets", "Secret", true),
		servedFor("", "v1", "events", "Event", true, "ev"),
		servedFor("events.k8s.io", "v1", "events", "Event", true, "ev"),
		servedFor("core.gardener.cloud", "v1beta1", "secretbindings", "SecretBinding", true, "sb"),
		servedFor("core.gardener.cloud", "v1beta1", "shoots", "Shoot", true),
		{GroupVersionResource: schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}, Subresource: "status"},
	}
	for typed, want := range map[string]string{
		"secrets": "secrets", "secret": "secrets", "Secret": "secrets", "sb": "secretbindings.core.gardener.cloud",
		"shoot.core.gardener.cloud": "shoots.core.gardener.cloud", "shoots.v1beta1.core.gardener.cloud": "shoots.core.gardener.cloud",
		"shoot/status": "shoots.core.gardener.cloud/status", "ev": "events", "events.events.k8s.io": "events.events.k8s.io",
		"shoots/binding": `has no subresource "binding": it has status`, "shots": "did you mean shoots.core.gardener.cloud",
		"secrets.core.gardener.cloud": "no resource", "": "no resource", "nonsense": "kubectl api-resources", "/": "no resource",
	} {
		found, err := resolve(all, typed)
		var usage *UsageError
		if err == nil && found.String() != want || err != nil && (!errors.As(err, &usage) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %s, %v; expected %s", typed, found, err, want)
		}
	}
}

func servedFor(group, version, resource, kind string, namespaced bool, short ...string) served {
	return served{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, Kind: kind, Namespaced: namespaced,
		names: append([]string{strings.ToLower(kind)}, short...)}
}

func TestAdmissionConfigIsRefused(t *testing.T) {
	for want, c := range map[string]AdmissionConfig{
		"say which garden":     {BindAddress: "127.0.0.1"},
		"not an IP address":    {Kubeconfig: "x", BindAddress: "localhost"},
		"--advertise-address":  {Kubeconfig: "x", BindAddress: "0.0.0.0"},
		"go together":          {Kubeconfig: "x", BindAddress: "127.0.0.1", CertFile: "x"},
		"needs that":           {Kubeconfig: "x", BindAddress: "127.0.0.1", CAFile: "x"},
		"allowed on loopback":  {Kubeconfig: "x", BindAddress: "192.0.2.1", CertFile: "x", KeyFile: "x"},
		"between 1 and 65535":  {Kubeconfig: "x", BindAddress: "127.0.0.1", Port: 65536},
		"--kubeconfig: stat x": {Kubeconfig: "x", BindAddress: "127.0.0.1"},
	} {
		c.Dir = t.TempDir()
		err := RunAdmissionController(t.Context(), c)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}
