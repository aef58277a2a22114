package harness

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Process is a program that the benchmark starts and ends.
type Process struct {
	cmd    *exec.Cmd
	output *output
	done   chan struct{}
	once   sync.Once
}

type output struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.Write(data)
}

// Start starts a program in a folder.
func Start(dir, program string, args ...string) (*Process, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(program, args...), output: &output{}, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.output, p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Log returns the end of the process's output.
func (p *Process) Log() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	data := p.output.data.Bytes()
	return string(data[max(0, len(data)-2000):])
}

// End asks the process to end and waits for it.
func (p *Process) End() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(30 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
}

// Poll calls condition until it is met, fails, or the time is up.
func Poll(ctx context.Context, timeout time.Duration, condition func() (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, timeout, true, func(context.Context) (bool, error) { return condition() })
}

// Pause waits, unless the context ends before.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// FreePort returns a port without a listener.
func FreePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func httpURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// Resident returns the resident memory of the process in bytes, or 0 where the system does not tell.
func (p *Process) Resident() uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// CPU returns the processor time that the process has used, or 0 where the system does not tell.
func (p *Process) CPU() time.Duration {
	const ticksPerSecond = 100 // the same on every Linux that Go supports
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0
	}
	_, afterName, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(afterName)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / ticksPerSecond
}
