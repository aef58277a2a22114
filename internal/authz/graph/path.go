package graph

// Path returns a path from the vertex to the Seed with this name, both included, or nil if there is none. It is for
// explanations, and keeps writers waiting while it looks, but goes only where the seed is reached.
func (g *Graph) Path(from Vertex, seed string) []Vertex {
	g.mu.Lock()
	defer g.mu.Unlock()
	start, goal := g.index.find(from), g.index.find(Vertex{Kind: KindSeed, Name: seed})
	if start == nil || goal == nil {
		return nil
	}
	cameFrom := map[*node]*node{start: nil}
	for todo := []*node{start}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n == goal {
			return trace(cameFrom, n)
		}
		if hit, _ := reaches(n, goal); !hit {
			continue
		}
		if next := g.stepToward(n, goal, cameFrom); next != nil {
			cameFrom[next] = n
			todo = append(todo, n, next) // back to n if next leads only to where the walk was already
		}
	}
	return nil
}

// stepToward returns a node that the walk has not seen, from which the goal is reached; the goal itself if it can.
func (g *Graph) stepToward(n, goal *node, seen map[*node]*node) (step *node) {
	for id := n.firstOut; id != 0; id = g.edges.at(id).nextOut {
		next := g.edges.at(id).to
		if next == goal {
			return goal
		}
		if _, was := seen[next]; was || step != nil {
			continue
		}
		if hit, _ := reaches(next, goal); hit {
			step = next
			if n.firstIn == 0 || n.kind.rank() < KindShoot.rank() {
				break // many edges, and which one it is does not matter
			}
		}
	}
	return step
}

func trace(cameFrom map[*node]*node, n *node) []Vertex {
	var path []Vertex
	for ; n != nil; n = cameFrom[n] {
		path = append(path, n.vertex())
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}
