package testutil

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Goroutines returns a check that waits until every goroutine that was started since has ended. It identifies goroutines
// instead of counting them; still, tests that run in parallel would see each other's.
func Goroutines(t testing.TB) (allEnded func(timeout time.Duration)) {
	before := stacks()
	return func(timeout time.Duration) {
		t.Helper()
		Eventually(t, timeout, func(context.Context) error {
			left := stacks()
			maps.DeleteFunc(left, func(id, _ string) bool { _, ran := before[id]; return ran })
			if len(left) == 0 {
				return nil
			}
			return fmt.Errorf("goroutines are left:\n%s", strings.Join(slices.Sorted(maps.Values(left)), "\n\n"))
		})
	}
}

// GoroutineGrowth returns a check for code that is started and stopped in cycles, beside other code that keeps
// running. The check waits until, for each line of code that starts goroutines, fewer than limit more are running
// than at first. A leak in every cycle grows by the number of cycles. Use it in a process of its own.
func GoroutineGrowth(t testing.TB) (below func(limit int)) {
	before := startedBy(stacks())
	return func(limit int) {
		t.Helper()
		Eventually(t, Timeout, func(context.Context) error {
			runtime.GC() // client-go ends the goroutines of a client when the client is collected
			var grown []string
			for line, running := range startedBy(stacks()) {
				if more := len(running) - len(before[line]); more >= limit {
					grown = append(grown, fmt.Sprintf("%d goroutines more, such as\n%s", more, running[0]))
				}
			}
			if len(grown) == 0 {
				return nil
			}
			return fmt.Errorf("goroutines are left:\n%s", strings.Join(grown, "\n\n"))
		})
	}
}

// startedBy groups stacks by the line of code that started the goroutine.
func startedBy(all map[string]string) map[string][]string {
	byLine := map[string][]string{}
	for _, stack := range all {
		_, creator, _ := strings.Cut(stack, "\ncreated by ")
		_, line, _ := strings.Cut(creator, "\n")
		byLine[line] = append(byLine[line], stack)
	}
	return byLine
}

// stacks returns the stacks of all goroutines by their identifiers.
func stacks() map[string]string {
	buffer, n := []byte(nil), 0
	for size := 1 << 16; n == len(buffer); size *= 2 {
		buffer = make([]byte, size)
		n = runtime.Stack(buffer, true)
	}
	byID := map[string]string{}
	for stack := range strings.SplitSeq(strings.TrimSpace(string(buffer[:n])), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		byID[id] = stack
	}
	return byID
}
