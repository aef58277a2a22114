package main

import "github.com/gardenlite/gardenlite/internal/authz/graph"

// walked is the same graph as a plain depth-first walk needs it.
type walked map[graph.Vertex]*walkedNode

type walkedNode struct{ to []*walkedNode }

func newWalked(s graph.Snapshot) walked {
	w := walked{}
	for _, v := range s.Vertices {
		w[v.Vertex] = &walkedNode{}
	}
	for _, e := range s.Edges {
		w[e.From].to = append(w[e.From].to, w[e.To])
	}
	return w
}

func (w walked) hasPath(from graph.Vertex, seed string) bool {
	start, goal := w[from], w[graph.Vertex{Kind: graph.KindSeed, Name: seed}]
	if start == nil || goal == nil {
		return false
	}
	seen := map[*walkedNode]struct{}{start: {}}
	for todo := []*walkedNode{start}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n == goal {
			return true
		}
		for _, next := range n.to {
			if _, was := seen[next]; !was {
				seen[next] = struct{}{}
				todo = append(todo, next)
			}
		}
	}
	return false
}
