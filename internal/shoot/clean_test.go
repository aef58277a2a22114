package shoot_test

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/shoot/spec"
)

// TestLeavesNothing wakes a control plane and puts it to sleep again, and looks at what is left.
func TestLeavesNothing(t *testing.T) {
	w := newWorld(t)
	secret := authorities(t)
	w.order(t, id, secret)
	cycle := func() {
		w.waitFor(t, id, spec.ControllerManager, 1)
		w.scale(t, id, 0)
		w.waitFor(t, id, spec.APIServer, 0)
	}
	cycle() // what is made once and kept
	before := settle(0)
	stacksBefore := stacks()
	for range 3 {
		w.scale(t, id, 1)
		cycle()
	}
	if after := settle(before + 10); after > before+10 {
		t.Errorf("%d goroutines more:\n%s", after-before, moreThan(stacksBefore, stacks()))
	}
	state, _ := w.host.State(id)
	checkNobodyListens(t, strings.TrimPrefix(state.URL, "https://"))
}

// settle returns how many goroutines there are: once there are at most want or, if it is not known what to want, no fewer
// get left.
func settle(want int) int {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	lowest, unchanged := runtime.NumGoroutine(), 0
	for lowest > want && (want > 0 || unchanged < 30) {
		select {
		case <-ticker.C:
		case <-timeout.C:
			return lowest
		}
		runtime.GC() // transports that nobody uses end with it
		unchanged++
		if n := runtime.NumGoroutine(); n < lowest {
			lowest, unchanged = n, 0
		}
	}
	return lowest
}

var pointer = regexp.MustCompile(`0x[0-9a-f]+`)

// stacks counts goroutines by where they are.
func stacks() map[string]int {
	var out bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&out, 1)
	counts := map[string]int{}
	for block := range strings.SplitSeq(out.String(), "\n\n") {
		head, rest, _ := strings.Cut(block, "\n")
		var n int
		if _, err := fmt.Sscanf(head, "%d @", &n); err == nil {
			counts[pointer.ReplaceAllString(rest, "")] += n
		}
	}
	return counts
}

func moreThan(before, after map[string]int) string {
	var lines []string
	for stack, n := range after {
		if n > before[stack] {
			lines = append(lines, fmt.Sprintf("%d more of\n%s", n-before[stack], stack))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
