package graphview

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/usage"
)

const (
	// mostInPicture and mostOnPage limit the vertices of a drawing: more could not be distinguished, and slow down a
	// browser.
	mostInPicture = 3000
	mostOnPage    = 400

	longestLabel = 60
	titleHeight  = 30
	legendHeight = 22
)

var (
	//go:embed page/drawing.svg
	drawingSVG string
	//go:embed page/drawing.css
	drawingCSS string

	drawingTemplate = template.Must(template.New("drawing").
			Funcs(template.FuncMap{"anchor": anchor, "plus": func(a, b int) int { return a + b }}).Parse(drawingSVG))
)

// drawing is a drawing of a part of the graph, with the Seeds on the right. drawing.svg renders it, alone and on the
// page.
type drawing struct {
	Width, Height int
	Boxes         []box
	Lines         []line
	Kinds         []drawnKind
	// Left is the number of vertices that did not fit, Unconnected the number of those that were omitted because they
	// have no edges.
	Left, Unconnected int
}

type box struct {
	graph.SnapshotVertex
	Index       int
	X, Y, Width int
	Label, Fill string
	URL         string // only on the page
	Selected    bool
}

type line struct {
	From, To int // indices of boxes
	Path     string
}

type drawnKind struct {
	graph.Kind
	Count int
	Fill  string
	X, Y  int // in the legend
}

// draw returns a drawing of the part of the graph around the selected vertices. If the filter has selected everything,
// vertices without edges are omitted, such as the default ServiceAccount of each namespace; else the selected vertices
// are marked.
func (v view) draw(selected []graph.SnapshotVertex, filtered bool, most int) *drawing {
	d := &drawing{}
	if !filtered {
		all := len(selected)
		selected = v.connected(selected)
		d.Unconnected = all - len(selected)
	}
	marked := map[graph.Vertex]bool{}
	for _, vertex := range selected {
		marked[vertex.Vertex] = filtered
	}
	var part graph.Snapshot
	part, d.Left = v.around(selected, most)
	l := newLayout(part)
	d.Width, d.Height = l.width, l.height
	counts := map[graph.Kind]int{}
	for i, vertex := range part.Vertices {
		p := l.points[i]
		d.Boxes = append(d.Boxes, box{
			SnapshotVertex: vertex, Index: i, X: l.columns[p.column].x, Y: int(p.y) - boxHeight/2, Width: l.columns[p.column].width,
			Label: label(vertex.Vertex), Fill: fill(vertex.Kind), Selected: marked[vertex.Vertex],
		})
		counts[vertex.Kind]++
	}
	for _, edge := range l.edges {
		d.Lines = append(d.Lines, line{From: edge[0], To: edge[len(edge)-1], Path: l.curve(edge)})
	}
	for kind, count := range counts {
		d.Kinds = append(d.Kinds, drawnKind{Kind: kind, Count: count, Fill: fill(kind)})
	}
	slices.SortFunc(d.Kinds, func(a, b drawnKind) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
	return d
}

// curve returns the SVG path of an edge: from the right side of a box, through the lanes of the columns in between, to
// the left side of another box.
func (l *layout) curve(edge []int) string {
	var path strings.Builder
	first := l.points[edge[0]]
	x, y := l.columns[first.column].x+l.columns[first.column].width, int(first.y)
	fmt.Fprintf(&path, "M%d %d", x, y)
	for i, id := range edge[1:] {
		p := l.points[id]
		left, right := l.columns[p.column].x, l.columns[p.column].x+l.columns[p.column].width
		bend := max(30, (left-x)/2)
		fmt.Fprintf(&path, "C%d %d %d %d %d %d", x+bend, y, left-bend, int(p.y), left, int(p.y))
		if i < len(edge)-2 {
			fmt.Fprintf(&path, "H%d", right)
		}
		x, y = right, int(p.y)
	}
	return path.String()
}

type picture struct {
	*drawing
	Title       string
	Style       template.CSS
	TitleHeight int
}

func writeSVG(w io.Writer, v view, selected []graph.SnapshotVertex, filtered bool) error {
	d := v.draw(selected, filtered, mostInPicture)
	if d.Left > 0 {
		return usage.Errorf("%d objects are too many for a drawing, which has room for %d: "+
			"choose some with --kind, --namespace or --object, or use -o dot", len(d.Boxes)+d.Left, mostInPicture)
	}
	title := fmt.Sprintf("Resource dependency graph: %d objects, %d edges", len(d.Boxes), len(d.Lines))
	if d.Unconnected > 0 {
		title += fmt.Sprintf(" (and %d objects without edges)", d.Unconnected)
	}
	d.Width = max(d.Width, 2*margin+9*len(title))
	d.addLegend()
	style := template.CSS(drawingCSS) //nolint:gosec // a file of this package
	return drawingTemplate.ExecuteTemplate(w, "picture", picture{d, title, style, titleHeight})
}

// addLegend adds the kinds below the drawing, in as many rows as necessary.
func (d *drawing) addLegend() {
	x, y := margin, titleHeight+d.Height
	for i := range d.Kinds {
		width := 34 + runeWidth*len(d.Kinds[i].String())
		if x+width > d.Width-margin {
			x, y = margin, y+legendHeight
		}
		d.Kinds[i].X, d.Kinds[i].Y = x, y
		x += width
	}
	d.Height = y + legendHeight
}

func label(v graph.Vertex) string {
	text := v.Name
	if v.Namespace != "" {
		text = v.Namespace + "/" + v.Name
	}
	if utf8.RuneCountInString(text) <= longestLabel {
		return text
	}
	runes := []rune(text)
	return string(runes[:longestLabel/2]) + "…" + string(runes[len(runes)-longestLabel/2+1:])
}

// fill returns the color of a kind, light enough for black text: the hues are the golden angle apart, and Seeds are
// gold. The color is in RGB, because not every SVG viewer supports other notations.
func fill(kind graph.Kind) string {
	hue, saturation, lightness := float64((int(kind)*137+40)%360), 0.65, 0.82
	if kind == graph.KindSeed {
		hue, saturation, lightness = 45, 1, 0.7
	}
	channel := func(offset float64) int {
		k := math.Mod(offset+hue/30, 12)
		a := saturation * min(lightness, 1-lightness)
		return int(255*(lightness-a*max(-1, min(k-3, 9-k, 1))) + 0.5)
	}
	return fmt.Sprintf("#%02x%02x%02x", channel(0), channel(8), channel(4))
}
