package express

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

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
	// width is how many are counted at most.
	width int

	mu sync.Mutex
	// counted are how many places are taken.
	counted int
	waiting []*visit
	// patience ends when the first of those who wait has waited for long enough, or earlier; nil if it does not run.
	patience *time.Timer
}

// visit is a request at the gate.
type visit struct {
	request *http.Request
	came    time.Time
	// found gets what sends the answer, or nil if there is none. Then the request has the place, if it has got one.
	found chan func(http.ResponseWriter)

	// place is set when it is let in, gone when it goes its way without. Guarded by the gate's mu until found has got something.
	place *place
	gone  bool
}

// place is one of those that are counted. One request after the other has it.
type place struct {
	timer *time.Timer
	// over says that it is not counted any more. Guarded by the gate's mu.
	over bool
}

func newGate(short func(*http.Request) func(http.ResponseWriter), next http.Handler) *gate {
	return &gate{short: short, next: next, width: gateWidth * runtime.GOMAXPROCS(0)}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/adminkubeconfig") && !strings.HasSuffix(r.URL.Path, "/viewerkubeconfig") {
		g.next.ServeHTTP(w, r)
		return
	}
	now := time.Now()
	r = r.WithContext(sharedreads.WithArrival(r.Context(), now))
	v := &visit{request: r, came: now, found: make(chan func(http.ResponseWriter), 1)}
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
	if g.patience == nil {
		g.patience = time.AfterFunc(gateWait, g.dismiss)
	}
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
	select {
	case send = <-v.found:
		return send, v.place != nil
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

// dismiss lets those go their way who have waited for long enough.
func (g *gate) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.waiting) > 0 {
		v := g.waiting[0]
		if left := gateWait - time.Since(v.came); left > 0 && !v.gone {
			g.patience.Reset(left)
			return
		}
		g.shift()
		if !v.gone {
			v.gone = true
			v.found <- nil
		}
	}
	g.patience = nil
}

// shift takes out who has waited longest. The caller holds mu.
func (g *gate) shift() {
	g.waiting[0] = nil
	if g.waiting = g.waiting[1:]; len(g.waiting) == 0 {
		g.waiting = nil
	}
}

// answer looks for answers from one place until nobody waits, or the place is not counted any more.
func (g *gate) answer() {
	p := &place{}
	for v := g.first(p); v != nil; v = g.first(p) {
		send := g.find(v.request)
		v.found <- send
		if send == nil { // the place is the request's
			return
		}
	}
}

// first lets in who has waited longest. If nobody waits the place is free.
func (g *gate) first(p *place) *visit {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.over {
		return nil
	}
	for len(g.waiting) > 0 {
		v := g.waiting[0]
		g.shift()
		if v.gone {
			continue
		}
		v.place = p
		if p.timer == nil {
			p.timer = time.AfterFunc(gateHold, func() { g.leave(p) })
		} else {
			p.timer.Reset(gateHold)
		}
		return v
	}
	g.free(p)
	return nil
}

// leave frees a place, unless that has happened, and has it taken.
func (g *gate) leave(p *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !p.over {
		g.free(p)
		g.fill()
	}
}

// free ends a place. The caller holds mu.
func (g *gate) free(p *place) {
	p.over = true
	g.counted--
	if p.timer != nil {
		p.timer.Stop()
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
