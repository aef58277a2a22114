package certwatch

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pollInterval is how often files are taken as changed that cannot be watched.
const pollInterval = time.Minute

// shared is the watcher of the process. It is open as long as files are watched.
var shared watcher

type watcher struct {
	mu     sync.Mutex
	events *fsnotify.Watcher
	// folders are watched, not files: a file is replaced by another of its name. The values count files.
	folders map[string]int
	watches map[*watch]struct{}
}

type watch struct {
	files   []string
	changed chan struct{}
}

// Until calls changed at the beginning and after each change of one of the files, until the context ends. It may also
// call it without a change.
func Until(ctx context.Context, changed func(), files ...string) {
	w := &watch{changed: make(chan struct{}, 1)}
	for _, file := range files {
		w.files = append(w.files, filepath.Clean(file))
	}
	err := shared.add(w)
	defer shared.remove(w)
	var poll <-chan time.Time
	if err != nil {
		ticker := time.NewTicker(pollInterval)
		defer ticker.Stop()
		poll = ticker.C
	}
	for ctx.Err() == nil {
		changed()
		select {
		case <-ctx.Done():
		case <-w.changed:
		case <-poll:
		}
	}
}

// add begins a watch. After an error, it may have no events.
func (s *watcher) add(w *watch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		events, err := fsnotify.NewWatcher()
		if err != nil {
			return err
		}
		s.events, s.folders, s.watches = events, map[string]int{}, map[*watch]struct{}{}
		go s.run(events)
	}
	s.watches[w] = struct{}{}
	var failed error
	for _, file := range w.files {
		folder := filepath.Dir(file)
		s.folders[folder]++
		if err := s.events.Add(folder); err != nil { // again for each watch: the folder may be another of the same name
			failed = err
		}
	}
	return failed
}

func (s *watcher) remove(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, watched := s.watches[w]; !watched {
		return
	}
	delete(s.watches, w)
	for _, file := range w.files {
		folder := filepath.Dir(file)
		if s.folders[folder]--; s.folders[folder] == 0 {
			delete(s.folders, folder)
			_ = s.events.Remove(folder) // a deleted folder is not watched any more
		}
	}
	if len(s.watches) == 0 {
		_ = s.events.Close()
		s.events = nil
	}
}

// run passes events on until the watcher is closed.
func (s *watcher) run(events *fsnotify.Watcher) {
	for {
		select {
		case event, open := <-events.Events:
			if !open {
				return
			}
			s.signal(func(w *watch) bool { return slices.Contains(w.files, event.Name) })
		case _, open := <-events.Errors:
			if !open {
				return
			}
			s.signal(func(*watch) bool { return true }) // events may have been lost
		}
	}
}

func (s *watcher) signal(concerns func(*watch) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		if concerns(w) {
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}
}
