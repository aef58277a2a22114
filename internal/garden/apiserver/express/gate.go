package express

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/registry/core/kubeconfig"
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
type gate struct {
	// short finds an answer for a request that has a slot, and returns what sends it, or nil; next is the way of all others.
	short func(*http.Request) (send func(http.ResponseWriter))
	next  http.Handler
	clock clock.WithDelayedExecution
	slots chan struct{}
}

func newGate(short func(*http.Request) func(http.ResponseWriter), next http.Handler) *gate {
	return &gate{short, next, clock.RealClock{}, make(chan struct{}, gateWidth*runtime.GOMAXPROCS(0))}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/adminkubeconfig") && !strings.HasSuffix(r.URL.Path, "/viewerkubeconfig") {
		g.next.ServeHTTP(w, r)
		return
	}
	r = r.WithContext(kubeconfig.WithArrival(r.Context(), g.clock.Now()))
	if g.enter(r.Context()) {
		leave := sync.OnceFunc(func() { <-g.slots })
		timer := g.clock.AfterFunc(gateHold, leave)
		defer func() {
			timer.Stop()
			leave()
		}()
		if send := g.short(r); send != nil {
			leave() // before the client takes it
			send(w)
			return
		}
	}
	g.next.ServeHTTP(w, r)
}

// enter waits for a slot, and says whether there is one.
func (g *gate) enter(ctx context.Context) bool {
	select {
	case g.slots <- struct{}{}:
		return true
	default:
	}
	timer := g.clock.NewTimer(gateWait)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return true
	case <-timer.C():
	case <-ctx.Done(): // what comes next finds that out
	}
	return false
}
