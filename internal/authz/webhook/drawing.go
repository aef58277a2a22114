package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// A drawing has at most so many vertices and edges: more could not be told apart, and would make a browser slow.
const (
	drawnVertices = 400
	drawnEdges    = 3000
)

// Sizes in the units of the drawing.
const (
	boxWidth    = 250
	boxHeight   = 24
	columnWidth = 400
	rowHeight   = 34
	stackWidth  = 280 // between the parts of a column that was too tall
	stackRows   = 40
	margin      = 30
	labelRunes  = 34
)

// drawing is a picture of the selected vertices, of all that they lead to, and of what leads to them. The seeds are on
// the right; a vertex is one column to the left of the nearest vertex that it leads to.
type drawing struct {
	Width, Height int
	Boxes         []box
	Lines         []line
	Kinds         []drawnKind
	// Left is how many vertices that belong here did not fit.
	Left int
}

type box struct {
	graph.SnapshotVertex
	Index    int
	X, Y     int
	Label    string
	URL      string
	Fill     string
	Selected bool
}

type line struct {
	From, To int // indices of boxes
	Path     string
}

type drawnKind struct {
	graph.Kind
	Count int
	Fill  string
}

// draw places the selected vertices and those around them.
func (v view) draw(selected []graph.SnapshotVertex) drawing {
	d := drawing{}
	chosen, left := v.choose(selected)
	d.Left = left
	index := make(map[graph.Vertex]int, len(chosen))
	for i, vertex := range chosen {
		index[vertex] = i
	}
	targets := make([][]int, len(chosen))
	edges := 0
	for i, vertex := range chosen {
		for _, edge := range v.outgoing(vertex) {
			if to, ok := index[edge.To]; ok && edges < drawnEdges {
				targets[i] = append(targets[i], to)
				edges++
			}
		}
	}
	columns := arrange(chosen, targets)
	d.place(v, chosen, columns, min(len(selected), len(chosen)))
	for from := range targets {
		for _, to := range targets[from] {
			d.Lines = append(d.Lines, line{From: from, To: to, Path: curve(d.Boxes[from], d.Boxes[to])})
		}
	}
	d.countKinds()
	return d
}

// choose takes the selected vertices, then whatever they lead to (nearest first), then what leads to them, until the
// drawing is full. It visits a vertex once, so a cycle does no harm.
func (v view) choose(selected []graph.SnapshotVertex) (chosen []graph.Vertex, left int) {
	seen := map[graph.Vertex]bool{}
	add := func(vertex graph.Vertex) {
		switch {
		case seen[vertex]:
		case len(chosen) == drawnVertices:
			seen[vertex] = true
			left++
		default:
			seen[vertex] = true
			chosen = append(chosen, vertex)
		}
	}
	for _, vertex := range selected {
		add(vertex.Vertex)
	}
	for i := 0; i < len(chosen); i++ {
		for _, edge := range v.outgoing(chosen[i]) {
			add(edge.To)
		}
	}
	incoming := v.incoming(selected)
	for _, vertex := range selected {
		for _, source := range incoming[vertex.Vertex] {
			add(source)
		}
	}
	return chosen, left
}

// arrange puts vertices into columns, the right-most first: by their distance to a Seed, in each column in the order
// that crosses few lines.
func arrange(chosen []graph.Vertex, targets [][]int) [][]int {
	distance := distances(chosen, targets)
	var columns [][]int
	for i := range chosen {
		for len(columns) <= distance[i] {
			columns = append(columns, nil)
		}
		columns[distance[i]] = append(columns[distance[i]], i)
	}
	columns = slices.DeleteFunc(columns, func(column []int) bool { return len(column) == 0 })
	height := make([]float64, len(chosen)) // where in its column a vertex is, from 0 to 1
	for c, column := range columns {
		wanted := make(map[int]float64, len(column))
		for _, i := range column {
			sum, n := 0.0, 0
			for _, to := range targets[i] {
				if distance[to] < distance[i] {
					sum += height[to]
					n++
				}
			}
			if n > 0 {
				wanted[i] = sum / float64(n)
			}
		}
		slices.SortFunc(column, func(a, b int) int {
			return cmp.Or(cmp.Compare(wanted[a], wanted[b]), chosen[a].Compare(chosen[b]))
		})
		for row, i := range column {
			height[i] = (float64(row) + 0.5) / float64(len(column))
		}
		columns[c] = column
	}
	return columns
}

// distances are the numbers of edges to the nearest Seed; what leads to none of the drawn ones comes left of all others.
func distances(chosen []graph.Vertex, targets [][]int) []int {
	sources := make([][]int, len(chosen))
	for from := range targets {
		for _, to := range targets[from] {
			sources[to] = append(sources[to], from)
		}
	}
	distance := make([]int, len(chosen))
	var queue []int
	for i, vertex := range chosen {
		distance[i] = -1
		if vertex.Kind == graph.KindSeed {
			distance[i] = 0
			queue = append(queue, i)
		}
	}
	farthest := 0
	for ; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		farthest = max(farthest, distance[i])
		for _, from := range sources[i] {
			if distance[from] < 0 {
				distance[from] = distance[i] + 1
				queue = append(queue, from)
			}
		}
	}
	for i := range distance {
		if distance[i] < 0 {
			distance[i] = farthest + 1
		}
	}
	return distance
}

// place gives each vertex its box, from the right-most column to the left-most. A column that is too tall to look at is
// broken into parts side by side.
func (d *drawing) place(v view, chosen []graph.Vertex, columns [][]int, selected int) {
	tallest := 1
	for _, column := range columns {
		tallest = max(tallest, min(len(column), stackRows))
	}
	d.Height = 2*margin + tallest*rowHeight
	d.Boxes = make([]box, len(chosen))
	left := 0 // how far the column is from the right-most
	for c, column := range columns {
		if c > 0 {
			left += columnWidth
		}
		part := 0
		for rows := range slices.Chunk(column, stackRows) {
			if part > 0 {
				left += stackWidth
			}
			part++
			top := margin + (tallest-len(rows))*rowHeight/2
			for row, i := range rows {
				d.Boxes[i] = v.boxOf(chosen[i], i, i < selected)
				d.Boxes[i].X, d.Boxes[i].Y = -left, top+row*rowHeight
			}
		}
	}
	d.Width = 2*margin + left + boxWidth
	for i := range d.Boxes {
		d.Boxes[i].X += margin + left
	}
}

func (v view) boxOf(vertex graph.Vertex, index int, selected bool) box {
	return box{
		SnapshotVertex: graph.SnapshotVertex{Vertex: vertex, Exists: v.exists(vertex)},
		Index:          index,
		Label:          shorten(vertex.String()),
		URL:            linkTo(vertex, false).URL,
		Fill:           fill(vertex.Kind),
		Selected:       selected,
	}
}

func (d *drawing) countKinds() {
	counts := map[graph.Kind]int{}
	for _, b := range d.Boxes {
		counts[b.Kind]++
	}
	for kind, count := range counts {
		d.Kinds = append(d.Kinds, drawnKind{kind, count, fill(kind)})
	}
	slices.SortFunc(d.Kinds, func(a, b drawnKind) int { return cmp.Compare(a.Kind.String(), b.Kind.String()) })
}

// curve goes from the right side of a box to the left side of another.
func curve(from, to box) string {
	x1, y1, x2, y2 := from.X+boxWidth, from.Y+boxHeight/2, to.X-4, to.Y+boxHeight/2
	bend := max(40, (x2-x1)/2)
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
}

// fill gives each kind a colour of its own, light enough for black text: the hues go round by the golden angle, and the
// seeds, where all ends, are gold.
func fill(kind graph.Kind) string {
	if kind == graph.KindSeed {
		return "hsl(45 100% 70%)"
	}
	return fmt.Sprintf("hsl(%d 65%% 82%%)", (int(kind)*137+40)%360)
}

func shorten(label string) string {
	if utf8.RuneCountInString(label) <= labelRunes {
		return label
	}
	runes := []rune(label)
	half := (labelRunes - 1) / 2
	return string(runes[:half]) + "…" + string(runes[len(runes)-half:])
}
