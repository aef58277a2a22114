package machine

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/shell"
)

// Limits of a unit's journal. Beyond them, the oldest lines are dropped, and long lines are cut.
const (
	MaxJournalLines = 200
	MaxJournalBytes = 32 << 10
	MaxJournalLine  = 2 << 10
)

// journal has the last lines of a unit.
type journal struct {
	entries []shell.JournalEntry
	bytes   int
}

func (j *journal) add(entry shell.JournalEntry) {
	entry.Message = strings.ToValidUTF8(entry.Message[:min(len(entry.Message), MaxJournalLine)], "�")
	j.entries = append(j.entries, entry)
	j.bytes += len(entry.Message)
	forget := 0
	for len(j.entries)-forget > MaxJournalLines || j.bytes > MaxJournalBytes {
		j.bytes -= len(j.entries[forget].Message)
		forget++
	}
	j.entries = slices.Delete(j.entries, 0, forget)
}

type journalKey struct{}

// Journal returns the writer to the journal of the unit that runs a Program. ctx is the context of the Program.
func Journal(ctx context.Context) io.Writer {
	if w, ok := ctx.Value(journalKey{}).(io.Writer); ok {
		return w
	}
	return io.Discard
}

// lineWriter splits the output of a unit into lines of the journal.
type lineWriter struct {
	log func(line string)

	mu   sync.Mutex
	part []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		w.part = append(w.part, line[:min(len(line), MaxJournalLine-min(len(w.part), MaxJournalLine))]...)
		if ended {
			w.flush()
		}
		rest = after
	}
	return len(p), nil
}

// end writes the last line if it does not end with a newline.
func (w *lineWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part) > 0 {
		w.flush()
	}
}

func (w *lineWriter) flush() {
	w.log(string(bytes.TrimSuffix(w.part, []byte{'\r'})))
	w.part = w.part[:0]
}
