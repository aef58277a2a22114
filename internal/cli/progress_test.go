package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/internal/control"
	"github.com/gardenlite/gardenlite/internal/terminal"
)

// TestLiveLineFits: the live line is shorter than the terminal is wide, follows its changes, and keeps the time at
// its end.
func TestLiveLineFits(t *testing.T) {
	columns := 0
	p := &progress{live: true, columns: func() int { return columns }, title: "Waiting for shoot dev/my-shoot",
		saying: " – Create Processing (34%): 日本 Waiting until Shoot infrastructure has been reconciled, " +
			"Waiting until the backup entry has been reconciled"}
	for _, columns = range []int{120, 80, 50, 7, 80} {
		line := p.frame(3, 42*time.Second)
		if got := terminal.Width(line); got >= columns || columns >= 50 && got < columns-2 {
			t.Errorf("at %d columns it takes %d: %q", columns, got, line)
		}
		if columns >= 50 && !strings.HasSuffix(line, "… 42s") {
			t.Errorf("at %d columns it is %q", columns, line)
		}
	}
	p.saying = ""
	if got := p.frame(0, 3400*time.Millisecond); got != "⠋ Waiting for shoot dev/my-shoot 3.4s" {
		t.Errorf("it is %q", got)
	}
}

// TestStepsAreAligned whatever is named in them.
func TestStepsAreAligned(t *testing.T) {
	var out bytes.Buffer
	p := &progress{out: &out}
	p.event(control.Event{Name: "garden: datastore", Took: 14 * time.Millisecond})
	p.event(control.Event{Name: "seed " + strings.Repeat("n", 60) + ": controllers", Took: 2123 * time.Millisecond})
	want := "✔   14ms  garden: datastore\n✔   2.1s  seed " + strings.Repeat("n", 60) + ": controllers\n"
	if out.String() != want {
		t.Errorf("it is\n%swant\n%s", out.String(), want)
	}
}
