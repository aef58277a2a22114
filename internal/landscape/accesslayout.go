package landscape

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// layout places a graph in columns (Sugiyama's way): every vertex left of all that it leads to, lanes for edges that pass
// through a column, an order in the columns that crosses few edges, then heights near the neighbours'.
type layout struct {
	points  []point // the vertices, then the lanes
	columns []column
	edges   [][]int // the points that each edge goes through, from left to right
	// left and right are each point's neighbours in the next columns.
	left, right   [][]int
	width, height int
}

// point is a vertex or a lane of an edge.
type point struct {
	column int // counted from the right
	y      float64
	size   float64
}

func (p *point) top() int { return int(p.y) - svgBoxHeight/2 }

type column struct {
	points   []int
	x, width int
}

// sweeps is how often the order and the heights are improved. More change nothing that can be seen.
const sweeps = 12

func newLayout(s graph.Snapshot) *layout {
	index := make(map[graph.Vertex]int, len(s.Vertices))
	for i, vertex := range s.Vertices {
		index[vertex.Vertex] = i
	}
	targets := make([][]int, len(s.Vertices))
	for _, edge := range s.Edges {
		from, to := index[edge.From], index[edge.To]
		targets[from] = append(targets[from], to)
	}
	l := &layout{points: make([]point, len(s.Vertices))}
	columns := columnsLeftOf(targets, s.Vertices)
	for i, vertex := range s.Vertices {
		l.points[i].size = svgRow
		l.column(columns[i], i, vertex.Vertex)
	}
	return l.connect(targets)
}

// columnsLeftOf says for each vertex how many columns it is from the right: seeds that lead nowhere are the right-most, and
// everything else is left of what it leads to. Where a cycle closes, an edge goes back.
func columnsLeftOf(targets [][]int, vertices []graph.SnapshotVertex) []int {
	columns := make([]int, len(targets))
	const unseen, open, done = 0, 1, 2
	state := make([]uint8, len(targets))
	var visit func(int)
	visit = func(i int) {
		state[i] = open
		if vertices[i].Kind != graph.KindSeed {
			columns[i] = 1 // a dead end is not where seeds are
		}
		for _, to := range targets[i] {
			if state[to] == unseen {
				visit(to)
			}
			if state[to] == done {
				columns[i] = max(columns[i], columns[to]+1)
			}
		}
		state[i] = done
	}
	for i := range targets {
		if state[i] == unseen {
			visit(i)
		}
	}
	return columns
}

// column puts a vertex into its column, which is as wide as the widest.
func (l *layout) column(at, id int, v graph.Vertex) {
	for len(l.columns) <= at {
		l.columns = append(l.columns, column{})
	}
	c := &l.columns[at]
	c.points = append(c.points, id)
	c.width = max(c.width, 16+svgRune*max(utf8.RuneCountInString(label(v)), len(v.Kind.String())))
	l.points[id].column = at
}

// connect makes the edges, with a lane in every column between their ends.
func (l *layout) connect(targets [][]int) *layout {
	for from := range targets {
		for _, to := range targets[from] {
			edge := []int{from}
			for at := l.points[from].column - 1; at > l.points[to].column; at-- {
				lane := len(l.points)
				l.points = append(l.points, point{column: at, size: svgLane})
				l.columns[at].points = append(l.columns[at].points, lane)
				edge = append(edge, lane)
			}
			l.edges = append(l.edges, append(edge, to))
		}
	}
	l.left, l.right = make([][]int, len(l.points)), make([][]int, len(l.points))
	for _, edge := range l.edges {
		for i := range len(edge) - 1 {
			if from, to := edge[i], edge[i+1]; l.points[from].column > l.points[to].column {
				l.right[from] = append(l.right[from], to)
				l.left[to] = append(l.left[to], from)
			}
		}
	}
	return l
}

// order sorts every column by the middle of its points' neighbours, to the right and to the left in turns.
func (l *layout) order() {
	rank := make([]float64, len(l.points))
	for c := range l.columns {
		l.rank(c, rank)
	}
	for sweep := range sweeps {
		for i := range l.columns {
			c, neighbours := i, l.right
			if sweep%2 == 1 {
				c, neighbours = len(l.columns)-1-i, l.left
			}
			wanted := make(map[int]float64, len(l.columns[c].points))
			for _, id := range l.columns[c].points {
				wanted[id] = mean(neighbours[id], rank, rank[id])
			}
			slices.SortStableFunc(l.columns[c].points, func(a, b int) int { return cmp.Compare(wanted[a], wanted[b]) })
			l.rank(c, rank)
		}
	}
}

// rank writes where in its column, from 0 to 1, each point is.
func (l *layout) rank(c int, rank []float64) {
	for i, id := range l.columns[c].points {
		rank[id] = (float64(i) + 0.5) / float64(len(l.columns[c].points))
	}
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

// place gives every point its height, near its neighbours', and every column its place.
func (l *layout) place() {
	y := make([]float64, len(l.points))
	for c := range l.columns {
		at := 0.0
		for _, id := range l.columns[c].points {
			at += l.points[id].size / 2
			y[id] = at
			at += l.points[id].size / 2
		}
	}
	for sweep := range sweeps {
		for i := range l.columns {
			c, neighbours := i, l.right
			if sweep%2 == 1 {
				c, neighbours = len(l.columns)-1-i, l.left
			}
			l.settle(l.columns[c].points, neighbours, y)
		}
	}
	lowest, highest := 0.0, 0.0
	for i, p := range l.points {
		if i == 0 {
			lowest, highest = y[i]-p.size/2, y[i]+p.size/2
		}
		lowest, highest = min(lowest, y[i]-p.size/2), max(highest, y[i]+p.size/2)
	}
	for i := range l.points {
		l.points[i].y = y[i] - lowest + svgMargin + svgTitle
	}
	l.height = int(highest-lowest) + 2*svgMargin + svgTitle
	x := svgMargin
	for c := len(l.columns) - 1; c >= 0; c-- {
		if l.columns[c].x = x; len(l.columns[c].points) > 0 { // without seeds the right-most is empty
			x += l.columns[c].width + svgGap
		}
	}
	l.width = x - svgGap + svgMargin
}

// settle moves the points of a column as near to the middle of their neighbours as their order and sizes let them: least
// squares, by pooling neighbours that would overlap.
func (l *layout) settle(points []int, neighbours [][]int, y []float64) {
	type pool struct {
		sum    float64 // of the wanted places of its points, as if each were the pool's first
		first  int
		n      int
		height float64 // of the points, from the middle of the first to the middle of the last
	}
	var pools []pool
	place := func(p pool) float64 { return p.sum / float64(p.n) }
	for i, id := range points {
		pools = append(pools, pool{sum: mean(neighbours[id], y, y[id]), first: i, n: 1})
		for n := len(pools); n > 1; n = len(pools) {
			last, before := pools[n-1], pools[n-2]
			gap := before.height + l.distance(points, last.first)
			if place(last) >= place(before)+gap {
				break
			}
			pools[n-2] = pool{sum: before.sum + last.sum - gap*float64(last.n), first: before.first, n: before.n + last.n, height: gap + last.height}
			pools = pools[:n-1]
		}
	}
	for _, p := range pools {
		at := place(p)
		for i := p.first; i < p.first+p.n; i++ {
			if i > p.first {
				at += l.distance(points, i)
			}
			y[points[i]] = at
		}
	}
}

// distance is how far the point is from the one above it.
func (l *layout) distance(points []int, i int) float64 {
	return (l.points[points[i-1]].size + l.points[points[i]].size) / 2
}
