package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is a program that this one started, and that it ends.
type process struct {
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

func start(dir, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), output: &output{}, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.output, p.output
	if !isAbsolute(program) {
		abs, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		p.cmd.Path = abs + "/" + program
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

func isAbsolute(path string) bool { return path != "" && path[0] == '/' }

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) log() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	data := p.output.data.Bytes()
	return string(data[max(0, len(data)-2000):])
}

// end asks the process to end and waits for it.
func (p *process) end() {
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

func poll(ctx context.Context, timeout time.Duration, condition func() (bool, error)) error {
	deadline := time.Now().Add(timeout)
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.New("not ready in time")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func httpURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
