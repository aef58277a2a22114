package landscape

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// A drawing of more vertices is not made: nobody could see anything on it.
const mostDrawn = 3000

// Sizes in the units of the drawing.
const (
	svgMargin    = 24
	svgTitle     = 30
	svgBoxHeight = 34
	svgRow       = 44 // from one box to the next
	svgLane      = 14 // what an edge that passes through a column takes
	svgGap       = 110
	svgRune      = 7 // width of a character
	svgTitleRune = 9
	svgLabel     = 60
	svgLegend    = 22
)

// writeSVG draws a graph: the seeds on the right, every edge from left to right. The same graph always makes the same
// drawing.
func writeSVG(w io.Writer, s graph.Snapshot, selected []graph.SnapshotVertex, filtered bool) error {
	if len(s.Vertices) > mostDrawn {
		return &UsageError{fmt.Errorf("%d objects are too many for a drawing, it has room for %d: choose some with --kind, --namespace or --name, or take -o dot", len(s.Vertices), mostDrawn)}
	}
	alone := 0
	if !filtered {
		s, alone = connected(s)
	}
	l := newLayout(s)
	l.order()
	l.place()
	emphasized := map[graph.Vertex]bool{}
	for _, vertex := range selected {
		emphasized[vertex.Vertex] = filtered
	}
	title := fmt.Sprintf("Resource dependency graph: %d objects, %d edges", len(s.Vertices), len(s.Edges))
	if alone > 0 {
		title += fmt.Sprintf(" (and %d objects without edges)", alone)
	}
	out := bufio.NewWriter(w)
	l.write(out, s, title, emphasized)
	return out.Flush()
}

// connected leaves out the objects without edges, and says how many they are.
func connected(s graph.Snapshot) (graph.Snapshot, int) {
	has := map[graph.Vertex]bool{}
	for _, edge := range s.Edges {
		has[edge.From], has[edge.To] = true, true
	}
	all := len(s.Vertices)
	s.Vertices = slices.DeleteFunc(s.Vertices, func(v graph.SnapshotVertex) bool { return !has[v.Vertex] && v.Kind != graph.KindSeed })
	return s, all - len(s.Vertices)
}

func (l *layout) write(out io.Writer, s graph.Snapshot, title string, emphasized map[graph.Vertex]bool) {
	width := max(l.width, 2*svgMargin+svgTitleRune*len(title))
	legend := legendOf(s, width)
	height := l.height + svgLegend*len(legend)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<title>%s</title>
<style>path{fill:none;stroke:#9aa4ae}rect.box{stroke:#5c6670}rect.absent{stroke-dasharray:4 3}rect.chosen{stroke:#000;stroke-width:2.5}.kind{font-size:10px;fill:#444}</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#9aa4ae;stroke:none"/></marker></defs>
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="%d" y="%d" font-size="14" font-weight="bold">%s</text>
`, width, height, width, height, title, svgMargin, svgMargin, title)
	for _, e := range l.edges {
		fmt.Fprintf(out, `<path d="%s" marker-end="url(#tip)"/>`+"\n", l.curve(e))
	}
	for i, vertex := range s.Vertices {
		l.writeBox(out, &l.points[i], vertex, emphasized[vertex.Vertex])
	}
	for i, row := range legend {
		x, y := svgMargin, l.height+i*svgLegend-svgMargin/2
		for _, kind := range row {
			fmt.Fprintf(out, `<rect x="%d" y="%d" width="12" height="12" fill="%s" stroke="#5c6670"/><text x="%d" y="%d">%s</text>`+"\n",
				x, y, colour(kind), x+18, y+10, kind)
			x += legendEntry(kind)
		}
	}
	fmt.Fprintln(out, "</svg>")
}

func (l *layout) writeBox(out io.Writer, p *point, vertex graph.SnapshotVertex, chosen bool) {
	class := "box"
	if !vertex.Exists {
		class += " absent"
	}
	if chosen {
		class += " chosen"
	}
	fmt.Fprintf(out, `<g><title>%s</title><rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s"/><text class="kind" x="%d" y="%d">%s</text><text x="%d" y="%d">%s</text></g>`+"\n",
		html.EscapeString(vertex.String()), class, l.columns[p.column].x, p.top(), l.columns[p.column].width, svgBoxHeight, colour(vertex.Kind),
		l.columns[p.column].x+8, p.top()+13, vertex.Kind, l.columns[p.column].x+8, p.top()+28, html.EscapeString(label(vertex.Vertex)))
}

// curve goes from the right side of a box, through the lanes of the columns between, to the left side of another.
func (l *layout) curve(e []int) string {
	first := l.points[e[0]]
	x, y := l.columns[first.column].x+l.columns[first.column].width, int(first.y)
	path := fmt.Sprintf("M%d %d", x, y)
	for i, id := range e[1:] {
		p := l.points[id]
		left, right := l.columns[p.column].x, l.columns[p.column].x+l.columns[p.column].width
		bend := max(30, (left-x)/2)
		path += fmt.Sprintf("C%d %d %d %d %d %d", x+bend, y, left-bend, int(p.y), left, int(p.y))
		if i < len(e)-2 {
			path += fmt.Sprintf("H%d", right)
		}
		x, y = right, int(p.y)
	}
	return path
}

func label(v graph.Vertex) string {
	text := v.Name
	if v.Namespace != "" {
		text = v.Namespace + "/" + v.Name
	}
	if utf8.RuneCountInString(text) <= svgLabel {
		return text
	}
	runes := []rune(text)
	return string(runes[:svgLabel/2]) + "…" + string(runes[len(runes)-svgLabel/2+1:])
}

// legendOf are the kinds that are drawn, in as many rows as they need.
func legendOf(s graph.Snapshot, width int) (rows [][]graph.Kind) {
	x := width
	var last graph.Kind
	for _, vertex := range s.Vertices { // sorted by kind
		if vertex.Kind == last {
			continue
		}
		last = vertex.Kind
		if x+legendEntry(last) > width-svgMargin {
			rows, x = append(rows, nil), svgMargin
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], last)
		x += legendEntry(last)
	}
	return rows
}

func legendEntry(kind graph.Kind) int { return 18 + svgRune*len(kind.String()) + 16 }

// colour gives each kind a colour of its own, as on the debug page: light, the hues around the circle by the golden
// angle, seeds in gold.
func colour(kind graph.Kind) string {
	if kind == graph.KindSeed {
		return rgb(45, 1, 0.7)
	}
	return rgb((int(kind)*137+40)%360, 0.65, 0.82)
}

// rgb converts from hue, saturation and lightness, which not every viewer of SVG knows.
func rgb(hue int, saturation, lightness float64) string {
	channel := func(n int) int {
		k := float64((n*30+hue)%360) / 30
		a := saturation * min(lightness, 1-lightness)
		return int(255*(lightness-a*max(-1, min(k-3, 9-k, 1))) + 0.5)
	}
	return fmt.Sprintf("#%02x%02x%02x", channel(0), channel(8), channel(4))
}
