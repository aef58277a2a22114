package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// table has the results for one number of seeds: a column for each number of shoots.
type table struct {
	seeds  int
	shoots []int
	rows   []*row
}

type row struct {
	name   string
	took   []time.Duration
	limit  time.Duration // 0 for none
	growth float64       // the largest allowed, 0 for any
	note   string        // of the last column
}

func (t *table) add(name string, took, limit time.Duration, growth float64, note string) {
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.name == name })
	if i < 0 {
		i, t.rows = len(t.rows), append(t.rows, &row{name: name, limit: limit, growth: growth})
	}
	t.rows[i].took, t.rows[i].note = append(t.rows[i].took, took), note
}

func (t *table) measure(l landscape) {
	before := heap()
	g := graph.New()
	largest, changes := map[graph.Kind]owned{}, l.moves(10_000)
	start := time.Now()
	t.measureWriting(g, l, "being filled", func(set func(owned)) {
		l.objects(func(obj any) {
			o := ownedBy(obj)
			set(o)
			if _, known := largest[o.vertex.Kind]; !known {
				largest[o.vertex.Kind] = o
			}
		})
	})
	took := time.Since(start)
	vertices, edges := g.Len()
	t.add("filling, a vertex", took/time.Duration(vertices), 0, 0,
		fmt.Sprintf("%d vertices, %d edges, %d bytes a vertex", vertices, edges, (heap()-before)/uint64(vertices)))
	t.measureWriting(g, l, "while shoots move", func(set func(owned)) {
		for _, c := range changes {
			set(c.owned)
		}
	})
	for _, c := range changes { // back
		o := ownedBy(l.shoot(c.shoot, l.seedOf(c.shoot)))
		g.Set(o.vertex, o.edges)
	}
	t.measureChecks(l, g)
	t.measureChanges(l, g, largest)
}

// measureChecks measures path checks of the vertex with the most edges of each kind, and of random ones.
func (t *table) measureChecks(l landscape, g *graph.Graph) {
	walk := walked{}
	for _, e := range g.Snapshot().Edges {
		walk[e.From] = append(walk[e.From], e.To)
	}
	largest := map[graph.Kind]graph.Vertex{}
	for v, next := range walk {
		// Every seed reads the garden's identity in kube-system, so there is no miss for it.
		if v.Namespace != "kube-system" && len(next) > len(walk[largest[v.Kind]]) {
			largest[v.Kind] = v
		}
	}
	largest[graph.KindSeed] = graph.Vertex{Kind: graph.KindSeed, Name: seedName(0)}
	for _, kind := range graph.Kinds() {
		v := largest[kind]
		for _, hit := range []bool{true, false} {
			name := fmt.Sprintf("check, %s, %s", kind, map[bool]string{true: "hit", false: "miss"}[hit])
			seed := l.pick(walk, v, hit)
			if walk.hasPath(v, seed) != hit || g.HasPath(v, seed) != hit {
				fail("%s: from %s to %s: wrong answer", name, v, seed)
			}
			walkTook := percentile(times(11, func(int) { walk.hasPath(v, seed) }), 500)
			took := batches(func(int) { g.HasPath(v, seed) })
			t.add(name, took, maxCheck, maxGrowth,
				fmt.Sprintf("%d edges; a walk: %s, %.0f times as long", len(walk[v]), short(walkTook), float64(walkTook)/float64(took)))
		}
	}
	for name, seed := range map[string]func(int) string{"hit": l.seedOf, "miss": func(int) string { return seedName(l.seeds - 1) }} {
		random := make([]graph.Vertex, 50_000)
		seeds := make([]string, len(random))
		for i := range random {
			shoot := rand.IntN(l.shoots)
			random[i] = graph.Vertex{Kind: graph.KindSecret, Namespace: namespace, Name: shootName(shoot) + ".ssh-keypair"}
			seeds[i] = seed(shoot)
		}
		t.add("check, random Secrets of shoots, "+name, batches(func(i int) { g.HasPath(random[i%len(random)], seeds[i%len(random)]) }), 0, 0, "")
	}
}

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

// pick returns a seed to which v has a path or, without hit, has none: then the last seed if possible, to which many
// seeds have a path.
func (l landscape) pick(walk walked, v graph.Vertex, hit bool) string {
	if hit {
		for v.Kind != graph.KindSeed && len(walk[v]) > 0 {
			v = walk[v][0]
		}
		return v.Name
	}
	if last := seedName(l.seeds - 1); !walk.hasPath(v, last) {
		return last
	}
	return seedName(1)
}

// measureChanges moves shoots, and deletes and adds the first object of each kind, to which the shared vertices belong.
func (t *table) measureChanges(l landscape, g *graph.Graph, first map[graph.Kind]owned) {
	moves := l.moves(2000)
	took := times(len(moves), func(i int) { g.Set(moves[i].vertex, moves[i].edges) })
	t.add("change, Shoot moves", percentile(took, 500), maxChange, 0, "p99 "+short(percentile(took, 990)))
	managed := seedName(l.seeds - 1 - l.seeds/20)
	at := graph.Vertex{Kind: graph.KindShoot, Namespace: "garden", Name: managed}
	took = times(2000, func(i int) {
		g.Set(at, []graph.Edge{{From: at, To: graph.Vertex{Kind: graph.KindSeed, Name: seedName(i % 2)}}})
	})
	t.add("change, Shoot of a ManagedSeed moves", percentile(took, 500), maxChange, 0, "p99 "+short(percentile(took, 990)))
	for _, kind := range graph.Kinds() {
		o, ok := first[kind]
		if !ok {
			continue
		}
		var added []time.Duration
		deleted := times(500, func(int) {
			g.Delete(o.vertex)
			added = append(added, times(1, func(int) { g.Set(o.vertex, o.edges) })...)
		})
		for i := range deleted {
			deleted[i] -= added[i]
		}
		t.add(fmt.Sprintf("change, %s deleted", kind), percentile(deleted, 500), maxChange, 0, "p99 "+short(percentile(deleted, 990)))
		t.add(fmt.Sprintf("change, %s added", kind), percentile(added, 500), maxChange, 0, "p99 "+short(percentile(added, 990)))
	}
}

type move struct {
	owned
	shoot int
}

// moves returns random shoots with the edges that they have on another seed.
func (l landscape) moves(n int) []move {
	moves := make([]move, n)
	for i := range moves {
		shoot := rand.IntN(l.shoots)
		moves[i] = move{ownedBy(l.shoot(shoot, seedName(rand.IntN(l.used())))), shoot}
	}
	return moves
}

// measureWriting measures how long each change takes, which is the longest that it can hold the lock, and how long
// path checks take meanwhile. The latter depends on the scheduler as well: a reader that waited goes on only when a
// processor is free.
func (t *table) measureWriting(g *graph.Graph, l landscape, when string, write func(set func(owned))) {
	var held, waits []time.Duration
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Microsecond):
			}
			from := graph.Vertex{Kind: graph.KindShoot, Namespace: namespace, Name: shootName(i % l.shoots)}
			waits = append(waits, times(1, func(int) { g.HasPath(from, seedName(0)) })...)
		}
	})
	write(func(o owned) { held = append(held, times(1, func(int) { g.Set(o.vertex, o.edges) })...) })
	close(done)
	wait.Wait()
	note := func(all []time.Duration) string {
		return fmt.Sprintf("p50 %s, longest %s", short(percentile(all, 500)), short(percentile(all, 1000)))
	}
	t.add("a change holds the lock, "+when+", p99.9", percentile(held, 999), maxHeld, 0, note(held))
	if len(waits) > 0 {
		t.add("a check takes, "+when+", p99.9", percentile(waits, 999), 0, 0, note(waits))
	}
}

func times(n int, do func(i int)) []time.Duration {
	samples := make([]time.Duration, n)
	for i := range samples {
		start := time.Now()
		do(i)
		samples[i] = time.Since(start)
	}
	return samples
}

// batches returns the median of the duration of one call, over batches of calls.
func batches(do func(i int)) time.Duration {
	const batch = 1000
	return percentile(times(101, func(n int) {
		for i := range batch {
			do(n*batch + i)
		}
	}), 500) / batch
}

func percentile(samples []time.Duration, perMille int) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[(len(sorted)-1)*perMille/1000]
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "Error: "+format+"\n", args...)
	os.Exit(1)
}

// print writes the table, and returns how many limits are missed.
func (t *table) print(w io.Writer) (missed int) {
	fmt.Fprintf(w, "\n%-48s", fmt.Sprintf("%d seeds, p50, with shoots:", t.seeds))
	for _, shoots := range t.shoots {
		fmt.Fprintf(w, "%11d ", shoots)
	}
	fmt.Fprintln(w, "   ratio")
	mark := func(tooHigh bool) string {
		if tooHigh {
			missed++
			return "!"
		}
		return " "
	}
	for _, r := range t.rows {
		fmt.Fprintf(w, "%-48s", r.name)
		for _, took := range r.took {
			fmt.Fprintf(w, "%11s%s", short(took), mark(r.limit > 0 && took > r.limit))
		}
		growth := float64(r.took[len(r.took)-1]) / float64(max(r.took[0], 1))
		fmt.Fprintf(w, "%8.1f%s %s\n", growth, mark(r.growth > 0 && growth > r.growth), r.note)
	}
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
