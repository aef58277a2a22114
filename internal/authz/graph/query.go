package graph

// Has says whether the vertex lives: its object exists, or an edge refers to it.
func (g *Graph) Has(v Vertex) bool { return g.index.find(v) != nil }

// Len returns how many vertices and edges there are; an edge counts once for each object that causes it.
func (g *Graph) Len() (vertices, edges int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.vertices, g.edges.live
}

// mostRetries is how often a reader asks again before it takes the lock. It asks again only when just then the seed came
// or went or what other seeds reach it changed, so practically never twice.
const mostRetries = 16

// HasPath says whether there is a path from the vertex to the Seed with this name. It takes no lock, does not allocate,
// and takes the same time for a path of any length in a graph of any size. The answer is what was true at some moment
// between the call and its return.
func (g *Graph) HasPath(from Vertex, seed string) bool {
	search := g.index.start(from)
	to := g.index.find(Vertex{Kind: KindSeed, Name: seed})
	n := search.find(from)
	if to == nil || n == nil {
		return false
	}
	for range mostRetries {
		if hit, stable := reaches(n, to); stable {
			return hit
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	hit, _ := reaches(n, to)
	return hit
}

// reaches says whether there is a path between two nodes, the second being a Seed's. It is not stable when destinations
// changed meanwhile: numbers may have got another meaning then, and the answer is void.
func reaches(n, seed *node) (hit, stable bool) {
	target := seed.dest.Load()
	if target == nil {
		return false, true // the seed just went
	}
	reachedBy := target.reachedBy.published.Load()
	hit, stable = n.meets(target.id, reachedBy)
	return hit, stable && seed.dest.Load() == target && target.reachedBy.published.Load() == reachedBy
}
