package main

import "github.com/gardenlite/gardenlite/internal/authz/graph"

// walked is the graph in the form that a plain depth-first walk needs.
type walked map[graph.Vertex][]graph.Vertex

func (w walked) hasPath(from graph.Vertex, seed string) bool {
	goal, seen := graph.Vertex{Kind: graph.KindSeed, Name: seed}, map[graph.Vertex]struct{}{from: {}}
	for todo := []graph.Vertex{from}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v == goal {
			return true
		}
		for _, next := range w[v] {
			if _, was := seen[next]; !was {
				seen[next] = struct{}{}
				todo = append(todo, next)
			}
		}
	}
	return false
}
