package shootplane_test

import (
	"strings"
	"testing"

	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
	"github.com/gardenlite/gardenlite/internal/testutil"
)

// TestLeavesNothing starts and stops a control plane several times, and checks that no goroutine and no listener is
// left.
func TestLeavesNothing(t *testing.T) {
	if !testutil.OwnProcess(t) {
		return
	}
	w := newWorld(t)
	secret := authorities(t)
	w.create(t, id, secret)
	cycle := func() {
		w.waitFor(t, id, spec.ControllerManager, 1)
		w.scale(t, id, 0)
		w.waitFor(t, id, spec.APIServer, 0)
	}
	cycle() // creates what is kept for the whole process
	const cycles = 3
	growthBelow := testutil.GoroutineGrowth(t)
	for range cycles {
		w.scale(t, id, 1)
		cycle()
	}
	growthBelow(cycles)
	state, _ := w.host.Status(id)
	checkNotListening(t, strings.TrimPrefix(state.URL, "https://"))
}
