package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/probe"
	grpcprobe "k8s.io/kubernetes/pkg/probe/grpc"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node/host"
)

// loopback is the address at which processes are reached.
const loopback = "127.0.0.1"

// startProbes starts to probe a container, after its postStart hook, until the context ends.
func (c *container) startProbes(ctx context.Context) *sync.WaitGroup {
	var probing sync.WaitGroup
	probing.Go(func() {
		if !c.postStart(ctx) {
			return
		}
		if p := c.spec.StartupProbe; p != nil {
			passed := c.probe(ctx, "Startup", p, func(ok bool) bool {
				if !ok {
					c.killUnhealthy("startup", p)
					return true
				}
				c.change(func() { c.started = true })
				return ok
			})
			if !passed {
				return
			}
		}
		if p := c.spec.ReadinessProbe; p != nil {
			probing.Go(func() {
				c.probe(ctx, "Readiness", p, func(ok bool) bool {
					c.change(func() { c.ready = ok })
					return false
				})
			})
		}
		if p := c.spec.LivenessProbe; p != nil {
			probing.Go(func() {
				c.probe(ctx, "Liveness", p, func(ok bool) bool {
					if !ok {
						c.killUnhealthy("liveness", p)
					}
					return !ok
				})
			})
		}
	})
	return &probing
}

func (c *container) killUnhealthy(kind string, p *corev1.Probe) {
	c.event(corev1.EventTypeNormal, "Killing", fmt.Sprintf("Container %s failed %s probe, will be restarted", c.spec.Name, kind))
	grace := Grace(c.pod.latest())
	if seconds := p.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	c.kill(grace)
}

// probe runs a probe periodically, and calls report when a result has reached its threshold. It returns the result once
// report returns true, and false if the context ends.
func (c *container) probe(ctx context.Context, kind string, p *corev1.Probe, report func(ok bool) (enough bool)) bool {
	wait := time.Duration(p.InitialDelaySeconds) * time.Second
	var last bool
	same, reported := int32(0), false
	for {
		if host.Sleep(ctx, c.pod.runner.cfg.Clock, wait) != nil {
			return false
		}
		wait = time.Duration(max(1, p.PeriodSeconds)) * time.Second
		result, output, err := c.runProbe(ctx, p)
		if ctx.Err() != nil {
			return false
		}
		ok := err == nil && (result == probe.Success || result == probe.Warning)
		if !ok {
			if err != nil {
				output = err.Error()
			}
			c.event(corev1.EventTypeWarning, "Unhealthy", kind+" probe failed: "+output)
		}
		if same > 0 && ok != last {
			same, reported = 0, false
		}
		last = ok
		same++
		threshold := max(1, p.FailureThreshold)
		if ok {
			threshold = max(1, p.SuccessThreshold)
		}
		if same >= threshold && !reported {
			reported = true
			if report(ok) {
				return ok
			}
		}
	}
}

// runProbe runs a probe once. It does not wait for an answer after the end of the context: the libraries cannot be
// interrupted, and who answers need not be a process of the Pod.
func (c *container) runProbe(ctx context.Context, p *corev1.Probe) (probe.Result, string, error) {
	timeout := time.Duration(max(1, p.TimeoutSeconds)) * time.Second
	if p.Exec != nil {
		return c.runProgram(ctx, p.Exec, timeout)
	}
	type answer struct {
		result probe.Result
		output string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, output, err := c.request(p, timeout)
		answered <- answer{result, output, err}
	}()
	select {
	case a := <-answered:
		return a.result, a.output, a.err
	case <-ctx.Done():
		return probe.Failure, "", context.Cause(ctx)
	}
}

// request runs a probe that asks a port. It fails if the probe names another host than this machine.
func (c *container) request(p *corev1.Probe, timeout time.Duration) (probe.Result, string, error) {
	switch {
	case p.HTTPGet != nil:
		if _, err := c.probedPort(p.HTTPGet.Host, p.HTTPGet.Port); err != nil {
			return probe.Failure, "", err
		}
		request, err := httpprobe.NewRequestForHTTPGetAction(p.HTTPGet, c.spec, loopback, "probe")
		if err != nil {
			return probe.Failure, "", err
		}
		return httpprobe.New(false).Probe(request, timeout)
	case p.TCPSocket != nil:
		port, err := c.probedPort(p.TCPSocket.Host, p.TCPSocket.Port)
		if err != nil {
			return probe.Failure, "", err
		}
		return tcpprobe.New().Probe(loopback, port, timeout)
	case p.GRPC != nil:
		port, err := c.probedPort("", intstr.FromInt32(p.GRPC.Port))
		if err != nil {
			return probe.Failure, "", err
		}
		return grpcprobe.New().Probe(loopback, ptr.Deref(p.GRPC.Service, ""), port, timeout)
	}
	return probe.Failure, "", errors.New("this kind of probe is not supported for processes")
}

// probedPort returns the port of a probe, if the host is this machine and a process of the Pod listens on the port.
func (c *container) probedPort(host string, port intstr.IntOrString) (int, error) {
	if err := isLocalHost(host); err != nil {
		return 0, err
	}
	number, err := probe.ResolveContainerPort(port, c.spec)
	if err == nil && !c.pod.Listens(number) {
		err = fmt.Errorf("no process of the Pod listens on port %d", number)
	}
	return number, err
}

func isLocalHost(host string) error {
	if ip := net.ParseIP(host); host == "" || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("host %q: a process is probed at this machine's loopback address only", host)
}

// runProgram runs the mapped program with the arguments of a probe, instead of the command that the probe names.
func (c *container) runProgram(ctx context.Context, exec *corev1.ExecAction, timeout time.Duration) (probe.Result, string, error) {
	command, err := c.command(ctx)
	if err != nil {
		return probe.Failure, "", err
	}
	mounts, err := c.mounts()
	if err != nil {
		return probe.Failure, "", err
	}
	command.args = append([]string{}, c.image.Args...)
	left := maxTotal
	for _, arg := range exec.Command[min(1, len(exec.Command)):] {
		if arg, err = mounts.rewrite(arg, &left); err != nil {
			return probe.Failure, "", err
		}
		command.args = append(command.args, arg)
	}
	out := &limited{}
	command.stdout, command.stderr = out, out
	ch, err := c.pod.runner.startChild(command)
	if err != nil {
		return probe.Failure, "", err
	}
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case <-ch.done:
	case <-ctx.Done():
		ch.signal(syscall.SIGKILL)
	case <-limit.C:
		ch.signal(syscall.SIGKILL)
		<-ch.done
		return probe.Failure, "", fmt.Errorf("timed out after %s", timeout)
	}
	<-ch.done
	if ch.exit.code != 0 {
		return probe.Failure, out.String(), nil
	}
	return probe.Success, out.String(), nil
}

// maxProbeOutput is how much of the output of a probe is kept, in bytes.
const maxProbeOutput = 10 << 10

// limited keeps the beginning of what is written to it.
type limited struct {
	mu   sync.Mutex
	data []byte
}

func (l *limited) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, data[:min(len(data), maxProbeOutput-len(l.data))]...)
	return len(data), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.data)
}
