package logview

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// followInterval is how often the log is looked at for new lines.
const followInterval = 200 * time.Millisecond

// reader passes the lines of files on that a filter chooses.
type reader struct {
	filter Filter
	emit   func(Line)
	// last is the last line that the logger has written.
	last Line
	// rest is the beginning of a line whose end is not there yet.
	rest []byte
	// components and clusters are the names that were seen.
	components, clusters map[string]bool
}

func newReader(filter Filter, emit func(Line)) *reader {
	return &reader{filter: filter, emit: emit, components: map[string]bool{}, clusters: map[string]bool{}}
}

// Read passes the lines of the log in a state directory to emit, those of older files first. With follow it goes on
// with new lines until the context ends or the log is deleted. It returns an error if there is no log, or if no line
// is of what the filter names.
func Read(ctx context.Context, dir string, filter Filter, follow bool, emit func(Line)) error {
	name := filepath.Join(dir, statedir.LogFile)
	r := newReader(filter, emit)
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	defer func() { file.Close() }()
	for _, older := range olderFiles(name) {
		if err := r.readFile(ctx, older); err != nil {
			return err
		}
	}
	if err := r.read(ctx, file); err != nil {
		return err
	}
	if !follow {
		r.end()
	}
	if err := r.checkName(); err != nil {
		return err
	}
	if !follow {
		return nil
	}
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if err := r.read(ctx, file); err != nil {
			return err
		}
		next, err := successor(name, file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // with the landscape
		} else if err != nil {
			return fmt.Errorf("following the log: %w", err)
		}
		if next != nil {
			if err := r.read(ctx, file); err != nil { // what was written before the change of files
				return err
			}
			file.Close()
			file = next
		}
	}
}

// Names returns the components and clusters that the newest file of the log names.
func Names(ctx context.Context, dir string) []string {
	r := newReader(Filter{}, func(Line) {})
	_ = r.readFile(ctx, filepath.Join(dir, statedir.LogFile)) // what can be read counts
	return slices.Concat(slices.Sorted(maps.Keys(r.components)), slices.Sorted(maps.Keys(r.clusters)))
}

// olderFiles returns the files to which the log was moved, the oldest first. Their names end with their time.
func olderFiles(name string) []string {
	dir, base := filepath.Split(name)
	files, _ := fs.Glob(os.DirFS(dir), strings.TrimSuffix(base, ".log")+"-*.log") // the pattern is well-formed
	slices.Sort(files)
	for i := range files {
		files[i] = dir + files[i]
	}
	return files
}

// successor returns the file that has taken the place of another one under its name, or nil if none has.
func successor(name string, file *os.File) (*os.File, error) {
	now, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if is, err := file.Stat(); err != nil || os.SameFile(is, now) {
		return nil, err
	}
	return os.Open(name)
}

func (r *reader) readFile(ctx context.Context, name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was the oldest one
	} else if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	defer file.Close()
	defer r.end()
	return r.read(ctx, file)
}

// read reads to the present end of a file.
func (r *reader) read(ctx context.Context, file io.Reader) error {
	buffered := bufio.NewReader(file)
	for ctx.Err() == nil {
		data, err := buffered.ReadBytes('\n')
		r.rest = append(r.rest, data...)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		r.end()
	}
	return ctx.Err()
}

// end ends the current line.
func (r *reader) end() {
	text := string(bytes.TrimRight(r.rest, "\r\n"))
	r.rest = r.rest[:0]
	if text == "" {
		return
	}
	line, ok := parse(text)
	if !ok { // of a crash, which concerns everything
		if !r.last.Time.Before(r.filter.Since) {
			r.emit(line)
		}
		return
	}
	r.last = line
	r.components[line.Component], r.clusters[line.Cluster] = true, true
	if !line.Time.Before(r.filter.Since) && line.Level >= r.filter.Level && r.filter.names(line) {
		r.emit(line)
	}
}

// checkName returns an error that says which names there are if no line has the one of the filter.
func (r *reader) checkName() error {
	delete(r.components, "")
	delete(r.clusters, "")
	component, _, _ := strings.Cut(r.filter.Name, " ")
	if r.filter.Name == "" || r.components[component] ||
		slices.ContainsFunc(r.filter.clusters(), func(name string) bool { return r.clusters[name] }) {
		return nil
	}
	return fmt.Errorf("the log names no component and no cluster %q: the components are %s, the clusters %s",
		r.filter.Name, strings.Join(slices.Sorted(maps.Keys(r.components)), ", "),
		strings.Join(slices.Sorted(maps.Keys(r.clusters)), ", "))
}
