package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
)

const (
	// maxLog is the size in bytes at which a container's log is rotated; one older part is kept.
	maxLog    = 10 << 20
	olderPart = ".1"
)

// logFile is the log of one run of a container, in the format of container runtimes.
type logFile struct {
	path  string
	now   func() time.Time
	mu    sync.Mutex
	file  *os.File
	size  int
	limit int
}

// openLog creates the log of a start, and removes the log of the start before the previous one.
func (c *container) openLog(attempt int32) (*logFile, error) {
	path := c.logPath(attempt)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the log of the container: %w", err)
	}
	if attempt >= 2 {
		for _, suffix := range []string{"", olderPart} {
			if err := os.Remove(c.logPath(attempt-2) + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("removing an old log of the container: %w", err)
			}
		}
	}
	l := &logFile{path: path, now: c.pod.runner.cfg.Clock.Now, limit: maxLog}
	return l, l.open()
}

func (c *container) logPath(attempt int32) string {
	return filepath.Join(c.pod.dir, "logs", c.spec.Name, strconv.Itoa(int(attempt))+".log")
}

func (l *logFile) open() (err error) {
	if l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
		return fmt.Errorf("making the log of the container: %w", err)
	}
	l.size = 0
	return nil
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// write writes a line, or a part of one.
func (l *logFile) write(stream string, line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fs.ErrClosed
	}
	if l.size >= l.limit {
		_ = l.file.Close()
		l.file = nil
		if err := os.Rename(l.path, l.path+olderPart); err != nil {
			return err
		}
		if err := l.open(); err != nil {
			return err
		}
	}
	entry := l.now().AppendFormat(nil, time.RFC3339Nano)
	tag, rest := " F ", line
	if n := len(line) - 1; line[n] == '\n' {
		rest = line[:n]
	} else {
		tag = " P "
	}
	entry = append(append(append(entry, " "+stream+tag...), rest...), '\n')
	n, err := l.file.Write(entry)
	l.size += n
	return err
}

// stream returns a writer that writes lines to the log, for one of the two outputs.
func (l *logFile) stream(name string) io.Writer { return &stream{l, name} }

type stream struct {
	log  *logFile
	name string
}

func (s *stream) Write(line []byte) (int, error) { return len(line), s.log.write(s.name, line) }

// Logs writes the log of a container according to the options.
func (p *Pod) Logs(ctx context.Context, options *corev1.PodLogOptions, to io.Writer) error {
	all := p.containers()
	i := slices.IndexFunc(all, func(c *container) bool { return c.spec.Name == options.Container })
	if i < 0 {
		return fmt.Errorf("the Pod has no container %q", options.Container)
	}
	c := all[i]
	p.mu.Lock()
	attempt := c.starts - 1
	p.mu.Unlock()
	if options.Previous {
		attempt--
	}
	if !c.isProcess() { // its log is empty: with follow, it ends with the Pod
		if options.Follow {
			select {
			case <-ctx.Done():
			case <-p.done:
			}
		}
		return nil
	}
	if attempt < 0 {
		return fmt.Errorf("container %q has not been started%s", c.spec.Name, map[bool]string{true: " before"}[options.Previous])
	}
	path := c.logPath(attempt)
	if !options.Follow && options.TailLines == nil {
		if err := c.copyLog(ctx, path+olderPart, options, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.copyLog(ctx, path, options, to)
}

func (c *container) copyLog(ctx context.Context, path string, options *corev1.PodLogOptions, to io.Writer) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("reading the log of container %q: %w", c.spec.Name, err)
	}
	read := &logs.LogOptions{TailLines: options.TailLines, LimitBytes: options.LimitBytes, Follow: options.Follow,
		Timestamp: options.Timestamps}
	switch {
	case options.SinceTime != nil:
		read.Since = options.SinceTime.Time
	case options.SinceSeconds != nil:
		read.Since = c.pod.runner.cfg.Clock.Now().Add(-time.Duration(*options.SinceSeconds) * time.Second)
	}
	return logs.ReadLogs(ctx, path, c.spec.Name, read, stateOf{c: c}, to, to)
}

// stateOf tells the reader of a log whether the container runs, with the interface of container runtimes.
type stateOf struct {
	runtimeapi.RuntimeService
	c *container
}

// ContainerStatus implements RuntimeService.
func (s stateOf) ContainerStatus(context.Context, string, bool) (*criv1.ContainerStatusResponse, error) {
	s.c.pod.mu.Lock()
	defer s.c.pod.mu.Unlock()
	state := criv1.ContainerState_CONTAINER_EXITED
	if s.c.child != nil {
		state = criv1.ContainerState_CONTAINER_RUNNING
	}
	return &criv1.ContainerStatusResponse{Status: &criv1.ContainerStatus{State: state}}, nil
}
