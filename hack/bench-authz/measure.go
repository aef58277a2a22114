package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

type row struct {
	name        string
	took, limit time.Duration
	walk        time.Duration // 0: not compared
	note        string
}

type result struct {
	landscape
	vertices, edges int
	bytes           float64
	load            time.Duration
	allocations     float64
	rows            []row
}

func measure(shoots, seeds int) *result {
	l := landscape{shoots, seeds}
	m := &result{landscape: l}
	before := heap()
	start := time.Now()
	g := l.graph()
	m.load = time.Since(start)
	after := heap()
	m.vertices, m.edges = g.Len()
	m.bytes = float64(after-before) / float64(m.vertices)
	walk := newWalked(g.Snapshot())

	cases := []struct {
		name    string
		queries []query
		hit     bool
	}{
		{"check, shoot, hit", l.oneOfShoot(graph.KindShoot, "", true), true},
		{"check, shoot, miss", l.oneOfShoot(graph.KindShoot, "", false), false},
		{"check, secret of a shoot, hit", l.oneOfShoot(graph.KindSecret, ".ssh-keypair", true), true},
		{"check, secret of a shoot, miss", l.oneOfShoot(graph.KindSecret, ".ssh-keypair", false), false},
		{"check, CloudProfile with all, hit", l.one(graph.KindCloudProfile, "local", true), true},
		{"check, CloudProfile with all, miss", l.one(graph.KindCloudProfile, "local", false), false},
		{fmt.Sprintf("check, Project with %d, hit", l.big()), l.one(graph.KindProject, "big", true), true},
		{fmt.Sprintf("check, Project with %d, miss", l.big()), l.one(graph.KindProject, "big", false), false},
	}
	for _, c := range cases {
		verify(c.name, g, walk, c.queries, c.hit)
		m.rows = append(m.rows, row{name: c.name, took: checks(g.HasPath, c.queries), limit: mostCheck, walk: walks(walk, c.queries)})
		m.allocations = max(m.allocations, testing.AllocsPerRun(100, func() { g.HasPath(c.queries[0].from, c.queries[0].seed) }))
	}
	stop := busy(l, g)
	for _, c := range cases {
		m.rows = append(m.rows, row{name: c.name + ", writer busy", took: checks(g.HasPath, c.queries), limit: mostCheck})
	}
	updates := stop()
	m.rows[len(m.rows)-1].note = fmt.Sprintf("%d updates meanwhile", updates)
	m.measureRandom(g, walk)
	m.measureUpdates(g)
	return m
}

// measureRandom checks random objects, so that a large graph is in no cache, and says what an access to it takes then.
func (m *result) measureRandom(g *graph.Graph, walk walked) {
	for _, hit := range []bool{true, false} {
		name := map[bool]string{true: "check, random objects, hit", false: "check, random objects, miss"}[hit]
		queries := m.queries(100_000, hit)
		verify(name, g, walk, queries, hit)
		m.rows = append(m.rows, row{name: name, took: checks(g.HasPath, queries), limit: noLimit, walk: walks(walk, queries)})
	}
	m.rows = append(m.rows, row{name: "(one access to as much memory)", took: memoryAccess(m.vertices), limit: noLimit})
}

const noLimit = time.Duration(1<<63 - 1)

// memoryAccess returns what it takes to follow a pointer to one of so many places, as large as a vertex.
func memoryAccess(places int) time.Duration {
	type place struct {
		next *place
		_    [200]byte
	}
	all := make([]*place, places)
	for i := range all {
		all[i] = &place{}
	}
	order := rand.Perm(places)
	for i := range order {
		all[order[i]].next = all[order[(i+1)%places]]
	}
	samples, at := make([]time.Duration, 201), all[0]
	for i := range samples {
		start := time.Now()
		for range 1000 {
			at = at.next
		}
		samples[i] = time.Since(start) / 1000
	}
	runtime.KeepAlive(at)
	return median(samples)
}

// verify ends the program if the graph or the walk is wrong: then the numbers are worth nothing.
func verify(name string, g *graph.Graph, walk walked, queries []query, want bool) {
	for i, q := range queries {
		if got := g.HasPath(q.from, q.seed); got != want || i < 100 && walk.hasPath(q.from, q.seed) != want {
			fmt.Fprintf(os.Stderr, "Error: %s: from %s to %s: %v, which is wrong\n", name, q.from, q.seed, got)
			os.Exit(1)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// checks returns the median over batches of what one path check takes.
func checks(hasPath func(graph.Vertex, string) bool, queries []query) time.Duration {
	const batches, batch = 201, 1000
	at := 0
	samples := make([]time.Duration, batches)
	for i := range samples {
		start := time.Now()
		for range batch {
			q := &queries[at]
			hasPath(q.from, q.seed)
			if at++; at == len(queries) {
				at = 0
			}
		}
		samples[i] = time.Since(start) / batch
	}
	return median(samples)
}

// walks returns the median of what one walk takes; a walk over everything takes long, so there are few.
func walks(w walked, queries []query) time.Duration {
	samples := make([]time.Duration, 21)
	for i := range samples {
		q := &queries[i%len(queries)]
		start := time.Now()
		w.hasPath(q.from, q.seed)
		samples[i] = time.Since(start)
	}
	return median(samples)
}

func median(samples []time.Duration) time.Duration {
	slices.Sort(samples)
	return samples[len(samples)/2]
}

// busy moves shoots to other seeds and back until it is stopped. The first is left where it is, and so are most: so the
// checks find what they found.
func busy(l landscape, g *graph.Graph) (stop func() int) {
	var wait sync.WaitGroup
	done, updates := make(chan struct{}), 0
	moves := l.moves(200)
	wait.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			move := moves[i%len(moves)]
			g.Set(move.owner, move.away)
			g.Set(move.owner, move.home)
			updates += 2
		}
	})
	return func() int {
		close(done)
		wait.Wait()
		return updates
	}
}

type move struct {
	owner      graph.Vertex
	away, home []graph.Edge
}

func (l landscape) moves(n int) []move {
	r := rand.New(rand.NewPCG(2, 2))
	moves := make([]move, n)
	for at := range moves {
		i := 1 + r.IntN(l.shoots-1)
		owner, home, _ := graph.EdgesOf(l.shoot(i, l.seedOf(i)), notLooked{})
		_, away, _ := graph.EdgesOf(l.shoot(i, (l.seedOf(i)+1)%(l.seeds-1)), notLooked{})
		moves[at] = move{owner, away, home}
	}
	return moves
}

func (m *result) measureUpdates(g *graph.Graph) {
	moves := m.moves(5000)
	each := func(name string, update func(move)) {
		samples := make([]time.Duration, len(moves))
		for i := range moves {
			start := time.Now()
			update(moves[i])
			samples[i] = time.Since(start)
		}
		took := median(samples)
		m.rows = append(m.rows, row{name: name, took: took, limit: mostUpdate, note: fmt.Sprintf("p99 %v", samples[len(samples)*99/100])})
	}
	each("update, shoot as it is", func(u move) { g.Set(u.owner, u.home) })
	each("update, shoot to another seed", func(u move) { g.Set(u.owner, u.away) })
	each("update, shoot back", func(u move) { g.Set(u.owner, u.home) })
	each("update, shoot deleted", func(u move) { g.Delete(u.owner) })
	each("update, shoot added", func(u move) { g.Set(u.owner, u.home) })
	m.measureManagedSeeds(g, each)
}

// measureManagedSeeds moves the shoot of a managed seed: all that is on that seed reaches another one.
func (m *result) measureManagedSeeds(g *graph.Graph, each func(string, func(move))) {
	if m.seeds < 20 {
		return
	}
	shoot := graph.Vertex{Kind: graph.KindShoot, Namespace: "garden", Name: m.seedName(9)}
	to := func(seed int) []graph.Edge {
		return []graph.Edge{{From: shoot, To: graph.Vertex{Kind: graph.KindSeed, Name: m.seedName(seed)}}}
	}
	targets := [][]graph.Edge{to(1), to(0)}
	i := 0
	each("update, shoot of a managed seed moves", func(move) {
		g.Set(shoot, targets[i%2])
		i++
	})
}

// print writes the table, and returns how many numbers are too high.
func (m *result) print(w io.Writer) (missed int) {
	fmt.Fprintf(w, "\n%d shoots on %d seeds: %d vertices, %d edges\n", m.shoots, m.seeds, m.vertices, m.edges)
	fmt.Fprintf(w, "%-52s %10s   %10s %9s\n", "median", "", "walk", "ratio")
	mark := func(tooHigh bool) string {
		if tooHigh {
			missed++
			return "!"
		}
		return " "
	}
	for _, r := range m.rows {
		fmt.Fprintf(w, "%-52s %10s %s", r.name, short(r.took), mark(r.took > r.limit))
		if r.walk > 0 {
			fmt.Fprintf(w, " %10s %8.1fx", short(r.walk), float64(r.walk)/float64(max(r.took, 1)))
		}
		fmt.Fprintf(w, "  %s\n", r.note)
	}
	fmt.Fprintf(w, "%-52s %10.1f %s\n", "allocations a check", m.allocations, mark(m.allocations > 0))
	fmt.Fprintf(w, "%-52s %10.0f %s\n", "bytes a vertex", m.bytes, mark(m.bytes > mostBytes && m.vertices > 5000))
	fmt.Fprintf(w, "%-52s %10s    %s a vertex\n", "loading", short(m.load), short(m.load/time.Duration(m.vertices)))
	return missed
}

func short(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
