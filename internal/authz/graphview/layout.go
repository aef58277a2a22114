package graphview

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// The sizes are in units of the drawing.
const (
	margin    = 24
	boxHeight = 34
	rowHeight = 44  // distance between the tops of two boxes
	laneSize  = 14  // height of an edge that passes through a column
	columnGap = 110 // between columns
	runeWidth = 7
)

// layout arranges a graph in columns, after Sugiyama: every vertex is left of the vertices to which it leads, edges
// that pass through a column have lanes there, the order in the columns avoids crossings, and a point is at about the
// height of its neighbors.
type layout struct {
	points  []point // the vertices, then the lanes
	columns []column
	edges   [][]int // the points of each edge, from left to right
	// left and right are the neighbors of each point in the adjacent columns.
	left, right   [][]int
	width, height int
}

// point is a vertex or a lane.
type point struct {
	column int     // counted from the right
	y      float64 // of its center
	size   float64
}

type column struct {
	points   []int
	x, width int
}

// sweeps is how often the order and the heights are improved. More make no visible difference.
const sweeps = 12

func newLayout(s graph.Snapshot) *layout {
	index := make(map[graph.Vertex]int, len(s.Vertices))
	for i, vertex := range s.Vertices {
		index[vertex.Vertex] = i
	}
	targets := make([][]int, len(s.Vertices))
	for _, edge := range s.Edges {
		from := index[edge.From]
		targets[from] = append(targets[from], index[edge.To])
	}
	l := &layout{points: make([]point, len(s.Vertices))}
	for at, ids := range columnsOf(s.Vertices, targets) {
		c := column{points: ids}
		for _, id := range ids {
			v := s.Vertices[id].Vertex
			c.width = max(c.width, 16+runeWidth*max(utf8.RuneCountInString(label(v)), len(v.Kind.String())))
			l.points[id] = point{column: at, size: rowHeight}
		}
		l.columns = append(l.columns, c)
	}
	l.connect(targets)
	l.order()
	l.place()
	return l
}

// columnsOf divides the vertices into columns, the rightmost first. It divides a column that is too tall into several,
// so that the drawing is wide rather than tall.
func columnsOf(vertices []graph.SnapshotVertex, targets [][]int) (columns [][]int) {
	ranks := make([][]int, 0, 8)
	for id, rank := range ranksOf(vertices, targets) {
		for len(ranks) <= rank {
			ranks = append(ranks, nil)
		}
		ranks[rank] = append(ranks[rank], id)
	}
	rows := max(16, int(2*math.Sqrt(float64(len(vertices)))))
	for _, ids := range ranks {
		if n := len(ids); n > 0 { // without Seeds there is no rank 0
			parts := (n + rows - 1) / rows
			columns = slices.AppendSeq(columns, slices.Chunk(ids, (n+parts-1)/parts))
		}
	}
	return columns
}

// ranksOf returns the distance of each vertex from the right: Seeds that lead nowhere have rank 0, and every other
// vertex a higher rank than those to which it leads. The edge that closes a cycle goes back.
func ranksOf(vertices []graph.SnapshotVertex, targets [][]int) []int {
	ranks := make([]int, len(targets))
	const unseen, open, done = 0, 1, 2
	state := make([]uint8, len(targets))
	var visit func(int)
	visit = func(i int) {
		state[i] = open
		if vertices[i].Kind != graph.KindSeed {
			ranks[i] = 1 // only Seeds are in the rightmost column
		}
		for _, to := range targets[i] {
			if state[to] == unseen {
				visit(to)
			}
			if state[to] == done {
				ranks[i] = max(ranks[i], ranks[to]+1)
			}
		}
		state[i] = done
	}
	for i := range targets {
		if state[i] == unseen {
			visit(i)
		}
	}
	return ranks
}

// lane identifies a lane. Edges share lanes: those with the same end or the same start, whichever has more edges.
type lane struct {
	column, vertex int
	outgoing       bool
}

// connect creates the edges, with a lane in every column between their ends.
func (l *layout) connect(targets [][]int) {
	incoming := make([]int, len(targets))
	for _, ids := range targets {
		for _, to := range ids {
			incoming[to]++
		}
	}
	lanes := map[lane]int{}
	for from := range targets {
		for _, to := range targets[from] {
			key := lane{vertex: to}
			if len(targets[from]) > incoming[to] {
				key = lane{vertex: from, outgoing: true}
			}
			edge := []int{from}
			for key.column = l.points[from].column - 1; key.column > l.points[to].column; key.column-- {
				id, ok := lanes[key]
				if !ok {
					id = len(l.points)
					lanes[key] = id
					l.points = append(l.points, point{column: key.column, size: laneSize})
					c := &l.columns[key.column]
					c.points = slices.Insert(c.points, len(c.points)/2, id) // near the vertices to which many points lead
				}
				edge = append(edge, id)
			}
			l.edges = append(l.edges, append(edge, to))
		}
	}
	l.left, l.right = make([][]int, len(l.points)), make([][]int, len(l.points))
	for _, edge := range l.edges {
		for i, to := range edge[1:] {
			if from := edge[i]; l.points[from].column > l.points[to].column {
				l.right[from] = append(l.right[from], to)
				l.left[to] = append(l.left[to], from)
			}
		}
	}
}

// sweep visits the columns alternately from right to left, with the neighbors on the right, and from left to right,
// with those on the left.
func (l *layout) sweep(visit func(column int, neighbors [][]int)) {
	for sweep := range sweeps {
		for i := range l.columns {
			if sweep%2 == 0 {
				visit(i, l.right)
			} else {
				visit(len(l.columns)-1-i, l.left)
			}
		}
	}
}

// order sorts every column by the mean of its points' neighbors.
func (l *layout) order() {
	rank := make([]float64, len(l.points)) // the position of each point in its column, from 0 to 1
	number := func(c int) {
		for i, id := range l.columns[c].points {
			rank[id] = (float64(i) + 0.5) / float64(len(l.columns[c].points))
		}
	}
	for c := range l.columns {
		number(c)
	}
	wanted := make([]float64, len(l.points))
	l.sweep(func(c int, neighbors [][]int) {
		for _, id := range l.columns[c].points {
			// Small differences are ignored: else vertices to which many points lead would move to one end of a column.
			wanted[id] = math.Round(mean(neighbors[id], rank, rank[id]) * 32)
		}
		slices.SortStableFunc(l.columns[c].points, func(a, b int) int { return cmp.Compare(wanted[a], wanted[b]) })
		number(c)
	})
}

func mean(ids []int, of []float64, otherwise float64) float64 {
	if len(ids) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, id := range ids {
		sum += of[id]
	}
	return sum / float64(len(ids))
}

// place sets the height of every point, near those of its neighbors, and the position of every column.
func (l *layout) place() {
	y, height := make([]float64, len(l.points)), 0.0
	for _, c := range l.columns {
		bottom := 0.0
		for _, id := range c.points {
			y[id] = bottom + l.points[id].size/2
			bottom += l.points[id].size
		}
		height = max(height, bottom) // the drawing is as tall as its tallest column
	}
	l.sweep(func(c int, neighbors [][]int) { l.settle(l.columns[c].points, neighbors, y, height) })
	for i := range l.points {
		l.points[i].y = y[i] + margin
	}
	x := margin
	for c := len(l.columns) - 1; c >= 0; c-- {
		l.columns[c].x = x
		x += l.columns[c].width + columnGap
	}
	if len(l.columns) > 0 {
		l.width, l.height = x-columnGap+margin, int(height)+2*margin
	}
}

// settle moves the points of a column close to the mean of their neighbors, without overlap and within the height. The
// result is the mean of two solutions, one that moves points down only and one that moves them up only.
func (l *layout) settle(points []int, neighbors [][]int, y []float64, height float64) {
	down, up := make([]float64, len(points)), make([]float64, len(points))
	for i, id := range points {
		down[i] = mean(neighbors[id], y, y[id])
		up[i] = down[i]
		if i > 0 {
			down[i] = max(down[i], down[i-1]+l.distance(points, i))
		}
	}
	for i := len(points) - 2; i >= 0; i-- {
		up[i] = min(up[i], up[i+1]-l.distance(points, i+1))
	}
	top, bottom := 0.0, height
	for _, id := range points {
		bottom -= l.points[id].size
	}
	for i, id := range points {
		half := l.points[id].size / 2
		y[id] = min(max((down[i]+up[i])/2, top+half), bottom+half)
		top, bottom = top+2*half, bottom+2*half
	}
}

// distance returns the distance of the point from the one above it.
func (l *layout) distance(points []int, i int) float64 {
	return (l.points[points[i-1]].size + l.points[points[i]].size) / 2
}
