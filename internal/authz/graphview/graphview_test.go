package graphview

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/testutil"
	"github.com/gardenlite/gardenlite/internal/usage"
)

func vertex(kind graph.Kind, namespace, name string) graph.Vertex {
	return graph.Vertex{Kind: kind, Namespace: namespace, Name: name}
}

// snapshotOf returns a graph with the edges, and their vertices in order.
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

func write(t *testing.T, s graph.Snapshot, f Filter, format string) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, s, f, format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestText(t *testing.T) {
	const want = `SecretBinding garden-dev/b
  → Shoot garden-dev/s
    → Seed a
  ← Secret garden-dev/<b>&"
1 of 5 objects, 4 edges in all
`
	if got := write(t, chain(), Filter{"secretbinding", "garden-*", "b"}, Text); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	const all = `CloudProfile local
  → Shoot garden-dev/s
Secret garden-dev/<b>&"
  → SecretBinding garden-dev/b
SecretBinding garden-dev/b
  → Shoot garden-dev/s
Seed a
Shoot garden-dev/s
  → Seed a
5 of 5 objects, 4 edges in all
`
	if got := write(t, chain(), Filter{}, Text); got != all {
		t.Errorf("got:\n%swant:\n%s", got, all)
	}
}

// TestFormatsShowTheSame checks that DOT, SVG and the page show the same vertices as JSON.
func TestFormatsShowTheSame(t *testing.T) {
	f := Filter{Kind: "secretbinding"}
	shown := []graph.Vertex{secret, binding, shoot, seedA}
	var page bytes.Buffer
	if err := Page(&page, chain(), f.Values(), "nonce", true); err != nil {
		t.Fatal(err)
	}
	inHTML := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&amp;", "&")
	for format, text := range map[string]string{
		"page": inHTML.Replace(page.String()), SVG: inHTML.Replace(write(t, chain(), f, SVG)),
		DOT: strings.ReplaceAll(write(t, chain(), f, DOT), `\"`, `"`),
	} {
		for _, v := range []graph.Vertex{secret, binding, shoot, seedA, profile} {
			if strings.Contains(text, v.String()) != slices.Contains(shown, v) {
				t.Errorf("%s: %s: expected %t in:\n%s", format, v, slices.Contains(shown, v), text)
			}
		}
	}
	v := view{chain()}
	part, left := v.around(selector{Kind: graph.KindSecretBinding}.selectFrom(v.Vertices), math.MaxInt)
	if len(part.Vertices) != len(shown) || len(part.Edges) != 3 || left != 0 {
		t.Errorf("around the binding are %v, and %d more", part, left)
	}
	if part, left := v.around(v.Vertices, 2); len(part.Vertices) != 2 || left != 3 {
		t.Errorf("of all, two are %v, and %d more", part, left)
	}
}

func TestUsageErrors(t *testing.T) {
	large := graph.Snapshot{}
	for i := range mostInPicture + 1 {
		large.Vertices = append(large.Vertices, graph.SnapshotVertex{Vertex: vertex(graph.KindSeed, "", fmt.Sprintf("s%05d", i))})
	}
	for want, err := range map[string]error{
		"the graph has":          Write(io.Discard, chain(), Filter{Kind: "Nonsense"}, Text),
		"no format":              Write(io.Discard, chain(), Filter{}, "png"),
		"3001 objects":           Write(io.Discard, large, Filter{}, SVG),
		`"Shoots" is no kind of`: Page(io.Discard, chain(), Filter{Kind: "Shoots"}.Values(), "", true),
	} {
		var usageErr *usage.Error
		if !errors.As(err, &usageErr) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

func TestTextOfCycleEnds(t *testing.T) {
	s := snapshotOf(graph.Edge{From: shoot, To: binding}, graph.Edge{From: binding, To: shoot})
	if got := write(t, s, Filter{Kind: "Shoot"}, Text); !strings.Contains(got, "see above") {
		t.Errorf("got:\n%s", got)
	}
	if path := Farthest(s, shoot); len(path) != 2 {
		t.Errorf("the path is %v", path)
	}
}

func TestFarthest(t *testing.T) {
	s := snapshotOf(graph.Edge{From: secret, To: binding}, graph.Edge{From: binding, To: shoot})
	if path := Farthest(s, secret); !slices.Equal(path, []graph.Vertex{secret, binding, shoot}) {
		t.Errorf("the path is %v", path)
	}
	if path := Farthest(s, seedA); path != nil {
		t.Errorf("the path of a vertex that is not in the graph is %v", path)
	}
}

// TestDrawingIsXML draws names that are markup, and parses the drawing.
func TestDrawingIsXML(t *testing.T) {
	svg := write(t, chain(), Filter{}, SVG)
	texts := ""
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, svg)
		}
		if data, ok := token.(xml.CharData); ok {
			texts += string(data)
		}
	}
	if !strings.Contains(texts, `garden-dev/<b>&"`) {
		t.Errorf("the Secret's name is not in %s", texts)
	}
}

// TestDrawingOfAnyGraph draws random graphs, some with cycles, and checks that the drawing is deterministic, boxes do
// not overlap, and edges go from left to right if there is no cycle.
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
		if write(t, s, Filter{}, SVG) != write(t, snapshotOf(edges...), Filter{}, SVG) {
			t.Fatalf("graph %d is drawn in two ways", seed)
		}
	}
}

// TestDrawingOfACycle checks that cycles, and vertices that lead to no seed, are drawn.
func TestDrawingOfACycle(t *testing.T) {
	a, b, c := vertex(graph.KindProject, "", "a"), vertex(graph.KindProject, "", "b"), vertex(graph.KindProject, "", "c")
	v := view{snapshotOf(graph.Edge{From: a, To: b}, graph.Edge{From: b, To: a}, graph.Edge{From: c, To: c})}
	if d := v.draw(v.Vertices, true, mostOnPage); len(d.Boxes) != 3 || len(d.Lines) != 3 {
		t.Errorf("%d boxes, %d lines", len(d.Boxes), len(d.Lines))
	}
	if d := (view{}).draw(nil, true, mostOnPage); len(d.Boxes) != 0 || d.Width != 0 {
		t.Errorf("an empty graph has %d boxes, and is %d wide", len(d.Boxes), d.Width)
	}
}

// TestUnconnected checks that vertices without edges are drawn if they are selected.
func TestUnconnected(t *testing.T) {
	s := chain()
	unused := graph.SnapshotVertex{Vertex: vertex(graph.KindServiceAccount, "garden-dev", "default"), Exists: true}
	s.Vertices = slices.Insert(s.Vertices, 4, unused) // between the Seed and the Shoot
	if svg := write(t, s, Filter{}, SVG); strings.Contains(svg, unused.String()) ||
		!strings.Contains(svg, "5 objects, 4 edges (and 1 objects without edges)") {
		t.Errorf("the whole graph:\n%s", svg)
	}
	if svg := write(t, s, Filter{Kind: "ServiceAccount"}, SVG); !strings.Contains(svg, unused.String()) ||
		!strings.Contains(svg, "1 objects, 0 edges") {
		t.Errorf("a part:\n%s", svg)
	}
}

// TestDrawingPointsRight checks that edges go from left to right, boxes do not overlap, and a full column does not make
// the drawing too tall.
func TestDrawingPointsRight(t *testing.T) {
	var edges []graph.Edge
	for i := range 1000 {
		s := vertex(graph.KindShoot, fmt.Sprintf("garden-%d", i%10), fmt.Sprintf("shoot-%04d", i))
		edges = append(edges, graph.Edge{From: s, To: seedA}, graph.Edge{From: profile, To: s})
	}
	for name, s := range map[string]graph.Snapshot{"small": chain(), "large": snapshotOf(edges...)} {
		for _, kind := range []graph.Kind{0, graph.KindSeed} {
			v := view{s}
			d := v.draw(selector{Kind: kind}.selectFrom(v.Vertices), kind != 0, mostOnPage)
			if len(d.Boxes) != min(mostOnPage, len(s.Vertices)) && kind == 0 {
				t.Errorf("%s: %d boxes", name, len(d.Boxes))
			}
			pointsRight(t, name, d)
		}
	}
}

func pointsRight(t *testing.T, name string, d *drawing) {
	t.Helper()
	if d.Width < d.Height {
		t.Errorf("%s: %d by %d is too tall to look at", name, d.Width, d.Height)
	}
	for i, b := range d.Boxes {
		if b.X < 0 || b.Y < 0 || b.X+b.Width > d.Width || b.Y+boxHeight > d.Height {
			t.Errorf("%s: %s is outside at %d, %d", name, b.Vertex, b.X, b.Y)
		}
		for _, other := range d.Boxes[:i] {
			if b.X < other.X+other.Width && other.X < b.X+b.Width && b.Y < other.Y+boxHeight && other.Y < b.Y+boxHeight {
				t.Errorf("%s: %s is on top of %s", name, b.Vertex, other.Vertex)
			}
		}
	}
	for _, l := range d.Lines {
		if d.Boxes[l.From].X >= d.Boxes[l.To].X {
			t.Errorf("%s: %s is not left of %s", name, d.Boxes[l.From].Vertex, d.Boxes[l.To].Vertex)
		}
	}
}
