package process

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/gardenlite/gardenlite/internal/fsutil"
)

const (
	// drainTimeout is how long the output of a process is read after its end: its children may have inherited it.
	drainTimeout = time.Second
	// endInterval is the time after which processes that were killed are looked for again.
	endInterval = 10 * time.Millisecond
	// maxLine is the maximum length of an output line in bytes; longer lines are written in parts.
	maxLine = 16 << 10
)

// command describes a process to start.
type command struct {
	program        string
	args, env      []string
	dir            string
	home           string    // when the process ends, daemons with their HOME in this folder are killed; none if empty
	stdout, stderr io.Writer // get one line, or a part of one, per write
}

// exit is how a process has ended.
type exit struct {
	code, signal int32
	at           time.Time
}

// child is a process that was started.
type child struct {
	pid  int
	done chan struct{}
	exit exit // valid once done is closed
}

// startChild starts a process in a process group of its own.
func (r *Runner) startChild(c command) (*child, error) {
	if err := checkProgram(c.program); err != nil {
		return nil, err
	}
	cmd := exec.Command(c.program, c.args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = c.env, c.dir, ownGroup()
	var outputs []output
	for _, to := range []struct {
		file   *io.Writer
		writer io.Writer
	}{{&cmd.Stdout, c.stdout}, {&cmd.Stderr, c.stderr}} {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("starting program %s: %w", c.program, err)
		}
		defer write.Close()
		*to.file = write
		outputs = append(outputs, output{read, to.writer})
	}
	r.starting.Lock()
	defer r.starting.Unlock()
	started := make(chan error)
	start := func() { started <- cmd.Start() }
	select {
	case r.start <- start:
	case <-r.ctx.Done():
		return nil, errors.New("the landscape stops")
	}
	if err := <-started; err != nil {
		for _, o := range outputs {
			_ = o.from.Close()
		}
		return nil, fmt.Errorf("starting program %s: %w", c.program, cmp.Or(errors.Unwrap(err), err))
	}
	ch := &child{pid: cmd.Process.Pid, done: make(chan struct{})}
	if err := r.writePID(ch.pid); err != nil {
		r.cfg.Log.Error(err, "Noting a process, which would be left behind if gardenlite is killed", "pid", ch.pid)
	}
	r.ended.Go(func() {
		defer close(ch.done)
		r.wait(cmd, ch, c.home, outputs)
	})
	return ch, nil
}

// wait waits until a process has ended, and kills the rest of its group and the daemons in a folder.
func (r *Runner) wait(cmd *exec.Cmd, ch *child, home string, outputs []output) {
	var copying sync.WaitGroup
	for _, o := range outputs {
		copying.Go(o.copy)
	}
	_ = cmd.Wait()
	ch.exit.at = r.cfg.Clock.Now()
	ch.signal(syscall.SIGKILL)
	if home != "" {
		if err := r.killAll(func() ([]int, error) { return r.daemons(home) }); err != nil {
			r.cfg.Log.Error(err, "Ending what a process has started")
		}
	}
	for _, o := range outputs {
		_ = o.from.SetReadDeadline(time.Now().Add(drainTimeout))
	}
	copying.Wait()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	ch.exit.code = int32(cmd.ProcessState.ExitCode())
	if status.Signaled() { // as in shells and container runtimes
		ch.exit.code, ch.exit.signal = 128+int32(status.Signal()), int32(status.Signal())
	}
	if err := os.Remove(r.pidFile(ch.pid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.cfg.Log.Error(err, "Removing the note of a process that has ended")
	}
}

// signal sends a signal to the whole group of a process.
func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(-c.pid, s) }

// stop sends SIGTERM to a process, and SIGKILL when the grace period is over.
func (c *child) stop(grace <-chan time.Time) {
	c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-grace:
		c.signal(syscall.SIGKILL)
		<-c.done
	}
}

// output is one of the two outputs of a process.
type output struct {
	from *os.File
	to   io.Writer
}

// copy copies the output line by line. It reads to the end even if writing fails, so that the process is not blocked.
func (o output) copy() {
	defer o.from.Close()
	lines := bufio.NewReaderSize(o.from, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			_, _ = o.to.Write(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (r *Runner) pidFile(pid int) string {
	return filepath.Join(r.cfg.Dir, pidsFolder, strconv.Itoa(pid))
}

// writePID records a process with its start time, which distinguishes it from a later process with the same PID.
func (r *Runner) writePID(pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return err
	}
	return fsutil.WriteFile(r.pidFile(pid), []byte(started), 0o600)
}

// EndLeftovers ends the processes that a Runner in a folder has left behind, and removes their working directories. No
// Runner may run in it.
func EndLeftovers(dir string, log logr.Logger) error {
	if _, err := os.Stat(filepath.Join(dir, pidsFolder)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r := &Runner{cfg: Config{Dir: dir, Log: log}}
	if err := r.endLeftovers(); err != nil {
		return err
	}
	r.removeWork()
	return nil
}

// endLeftovers kills the recorded processes that still run, and what the processes of Pods have started.
func (r *Runner) endLeftovers() error {
	folder := filepath.Join(r.cfg.Dir, pidsFolder)
	files, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("looking for processes that were left behind: %w", err)
	}
	noted := map[int]string{}
	for _, file := range files {
		started, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return fmt.Errorf("looking for processes that were left behind: %w", err)
		}
		if pid, err := strconv.Atoi(file.Name()); err == nil {
			noted[pid] = string(started)
		}
	}
	if len(noted) == 0 {
		return nil
	}
	err = r.killAll(func() ([]int, error) {
		all, err := listProcesses()
		if err != nil {
			return nil, err
		}
		pids, err := processesIn(filepath.Join(r.cfg.Dir, podsFolder))
		for _, p := range all {
			if started, ok := noted[p.pid]; ok && p.started == started {
				pids = append(pids, p.pid)
			}
		}
		return pids, err
	})
	if err != nil {
		return err
	}
	for pid := range noted {
		if err := os.Remove(r.pidFile(pid)); err != nil {
			return fmt.Errorf("removing the note of a process that has ended: %w", err)
		}
	}
	return nil
}

// daemons returns the processes in a folder that have left the groups of those that were started. Hooks and probes have
// groups of their own, and are not daemons.
func (r *Runner) daemons(home string) ([]int, error) {
	r.starting.Lock()
	defer r.starting.Unlock()
	pids, err := processesIn(home)
	return slices.DeleteFunc(pids, func(pid int) bool {
		group, err := syscall.Getpgid(pid)
		if err == nil {
			_, err = os.Stat(r.pidFile(group))
			return err == nil
		}
		return true // it has ended
	}), err
}

// killAll kills processes until there are none: a process may start another one while it is being killed.
func (r *Runner) killAll(find func() ([]int, error)) error {
	for first := true; ; first = false {
		pids, err := find()
		if err != nil {
			return fmt.Errorf("looking for processes that were left behind: %w", err)
		}
		if len(pids) == 0 {
			return nil
		}
		if first {
			r.cfg.Log.Info("Ending processes that were left behind", "pids", pids)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("ending process %d, which was left behind: %w", pid, err)
			}
		}
		time.Sleep(endInterval)
	}
}

// processInfo is what the operating system knows about a process.
type processInfo struct {
	pid, group int
	started    string
	zombie     bool  // it has ended, and its parent has not waited for it yet
	memory     int64 // resident, in bytes
	cpu        time.Duration
}
