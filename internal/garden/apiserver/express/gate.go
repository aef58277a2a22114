package express

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/sharedreads"
)

const (
	// gateWait is how long a request waits at the gate at most.
	gateWait = time.Second
	// gateHold is how long a request that has passed the gate is counted at most.
	gateHold = 100 * time.Millisecond
	// gateWidth is how many are let in at a time for each processor.
	gateWidth = 2
)

// gate lets few of many requests for kubeconfigs in at a time, in the order in which they came, so that the first ones are
// answered while others wait; if all go in at once, all are answered at the end, and what they wait for together is read when
// the processors have time. It is no limit: nobody waits for longer than a second, and a request that takes long is not
// counted any more. All other requests pass.
//
// Answers are found by few goroutines, one request after the other. The goroutine that a request comes in would first have to
// let its stack grow, which takes a tenth of the time that an answer does, and memory for as long as there is the request.
type gate struct {
	// short finds an answer for a request, and returns what sends it, or nil; next is the way of all others.
	short func(*http.Request) (send func(http.ResponseWriter))
	next  http.Handler
	clock clock.WithDelayedExecution
	// width is how many are counted at most.
	width int

	mu sync.Mutex
	// counted are how many places are taken.
	counted int
	waiting []*visit
}

// visit is a request at the gate.
type visit struct {
	request *http.Request
	// found gets what sends the answer, or nil if there is none; then the request has the place.
	found chan func(http.ResponseWriter)

	// place is set when it is let in, gone when it goes its way without. Guarded by the gate's mu.
	place *place
	gone  bool
}

// place is one of those that are counted.
type place struct {
	timer clock.Timer
	// over says that it is not counted any more, or is somebody else's. Guarded by the gate's mu.
	over bool
}

func newGate(short func(*http.Request) func(http.ResponseWriter), next http.Handler) *gate {
	return &gate{short: short, next: next, clock: clock.RealClock{}, width: gateWidth * runtime.GOMAXPROCS(0)}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/adminkubeconfig") && !strings.HasSuffix(r.URL.Path, "/viewerkubeconfig") {
		g.next.ServeHTTP(w, r)
		return
	}
	r = r.WithContext(sharedreads.WithArrival(r.Context(), g.clock.Now()))
	v := &visit{request: r, found: make(chan func(http.ResponseWriter), 1)}
	g.come(v)
	send, in := g.wait(r.Context(), v)
	switch {
	case send != nil:
		send(w)
		return
	case in:
		defer g.leave(v.place)
	}
	g.next.ServeHTTP(w, r)
}

// come lets a request in at once, or lets it wait.
func (g *gate) come(v *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, v)
	g.fill()
}

// fill has free places taken. The caller holds mu.
func (g *gate) fill() {
	if len(g.waiting) > 0 && g.counted < g.width {
		g.counted++
		go g.answer()
	}
}

// wait waits until an answer has been looked for, and says whether it has been.
func (g *gate) wait(ctx context.Context, v *visit) (send func(http.ResponseWriter), in bool) {
	timer := g.clock.NewTimer(gateWait)
	defer timer.Stop()
	select {
	case send = <-v.found:
		return send, true
	case <-timer.C():
	case <-ctx.Done(): // what comes next finds that out
	}
	if g.goes(v) {
		return nil, false
	}
	return <-v.found, true
}

// goes says whether a request can go its way without having been let in.
func (g *gate) goes(v *visit) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	v.gone = v.place == nil
	return v.gone
}

// answer looks for answers from one place until nobody waits, or somebody else has the place.
func (g *gate) answer() {
	for v := g.first(); v != nil; v = g.first() {
		send := g.find(v.request)
		v.found <- send
		if send == nil || !g.keep(v.place) {
			return
		}
		runtime.Gosched() // an answer that is found is sent before the next one is looked for
	}
}

// first lets in who has waited longest. If nobody waits the place is free.
func (g *gate) first() *visit {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.waiting) > 0 {
		v := g.waiting[0]
		g.waiting[0] = nil
		g.waiting = g.waiting[1:]
		if v.gone {
			continue
		}
		v.place = &place{}
		v.place.timer = g.clock.AfterFunc(gateHold, func() { g.leave(v.place) })
		return v
	}
	g.waiting = nil
	g.counted--
	return nil
}

// keep ends the place of a request for which there is an answer, and says whether the next one may have it.
func (g *gate) keep(p *place) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.timer.Stop()
	ours := !p.over
	p.over = true
	return ours
}

// leave frees a place, unless that has happened.
func (g *gate) leave(p *place) {
	if g.keep(p) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.counted--
		g.fill()
	}
}

// find looks for an answer. What fails in any way goes the other way, where it fails as usual.
func (g *gate) find(r *http.Request) (send func(http.ResponseWriter)) {
	defer func() {
		if p := recover(); p != nil {
			send = nil
			klog.FromContext(r.Context()).Error(nil, "Answering a request for a kubeconfig panicked", "panic", p)
		}
	}()
	return g.short(r)
}
