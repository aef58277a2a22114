package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node/host"
)

const (
	// backoffFirst and backoffMax bound the delay before a container is restarted, and backoffReset is how long it has
	// to run until the delay starts over. They are the same as in the kubelet.
	backoffFirst = 10 * time.Second
	backoffMax   = 5 * time.Minute
	backoffReset = 2 * backoffMax
	// startRetry is the delay before the failed start of a container is retried.
	startRetry = 10 * time.Second
	// CompletionTime is how long a simulated container of a Job runs.
	CompletionTime = time.Second
)

// container is one container of a Pod.
type container struct {
	pod   *Pod
	spec  *corev1.Container
	kind  podutil.ContainerType
	image Image // zero if the container is simulated

	// The fields below are guarded by pod.mu.
	status corev1.ContainerStatus
	starts int32
	child  *child
	// memory and cpu are the usage of the process, in bytes and CPUs; measuredAt is zero before the first measurement.
	memory     int64
	cpu        cpuRate
	measuredAt time.Time
	// ready says that the readiness probe succeeds, started that the startup probe has.
	ready, started bool
	reason         string // why the process is ended, if the node ends it
	changed        chan struct{}
}

// newContainer returns a container that continues from its status in the API: one that has ended is not restarted.
func (p *Pod) newContainer(spec *corev1.Container, before []corev1.ContainerStatus,
	kind podutil.ContainerType) *container {
	c := &container{pod: p, spec: spec, kind: kind, changed: make(chan struct{}, 1)}
	c.image, _ = p.runner.cfg.Images.Lookup(spec.Image)
	c.status = corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: ptr.To(false), AllocatedResources: spec.Resources.Requests}
	if len(spec.Resources.Requests)+len(spec.Resources.Limits) > 0 {
		c.status.Resources = &corev1.ResourceRequirements{Requests: spec.Resources.Requests, Limits: spec.Resources.Limits}
	}
	c.status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	if len(p.pod.Spec.InitContainers) > 0 {
		c.status.State.Waiting.Reason = "PodInitializing"
	}
	i := slices.IndexFunc(before, func(s corev1.ContainerStatus) bool { return s.Name == spec.Name })
	if i < 0 {
		return c
	}
	last := before[i]
	switch ended := last.State.Terminated; {
	case ended != nil && !c.isInit() && !c.restarts(ended.ExitCode):
		c.status = last
		return c
	case ended != nil:
		c.status.LastTerminationState.Terminated = ended
	case last.State.Running != nil:
		c.status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "the process was ended with its node",
			StartedAt: last.State.Running.StartedAt, FinishedAt: metav1.NewTime(p.runner.cfg.Clock.Now()), ContainerID: last.ContainerID,
		}
	default:
		c.status.LastTerminationState = last.LastTerminationState
	}
	if lost := c.status.LastTerminationState.Terminated; lost != nil && c.isEphemeral() {
		c.status = last
		c.status.Ready, c.status.State = false, corev1.ContainerState{Terminated: lost}
		return c
	}
	if c.status.LastTerminationState.Terminated != nil {
		c.status.RestartCount, c.starts = last.RestartCount, last.RestartCount+1
	}
	return c
}

func (c *container) isInit() bool { return c.kind == podutil.InitContainers }

func (c *container) isEphemeral() bool { return c.kind == podutil.EphemeralContainers }

func (c *container) isSidecar() bool {
	return c.isInit() && podutil.IsRestartableInitContainer(c.spec)
}

func (c *container) isProcess() bool { return c.image.Program != "" }

// restarts reports whether the container is restarted after it has ended with this exit code.
func (c *container) restarts(code int32) bool {
	if c.isEphemeral() {
		return false
	}
	policy := c.pod.latest().Spec.RestartPolicy
	switch {
	case c.isSidecar():
		return true
	case c.isInit() && policy == corev1.RestartPolicyAlways: // until it succeeds
		policy = corev1.RestartPolicyOnFailure
	}
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
}

func (c *container) succeeded() bool {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	ended := c.status.State.Terminated
	return ended != nil && ended.ExitCode == 0
}

// awaitStarted waits until a sidecar has started. It returns false if the context ends before.
func (c *container) awaitStarted(ctx context.Context) bool {
	for {
		c.pod.mu.Lock()
		started := c.started
		c.pod.mu.Unlock()
		if started {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-c.changed:
		}
	}
}

// change changes the status, and lets the kubelet write it.
func (c *container) change(change func()) {
	c.pod.mu.Lock()
	change()
	running := c.status.State.Running != nil
	c.status.Started = ptr.To(running && c.started)
	c.status.Ready = running && c.started && c.ready && !c.isEphemeral() ||
		c.isInit() && !c.isSidecar() && c.status.State.Terminated != nil && c.status.State.Terminated.ExitCode == 0
	c.pod.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
	c.pod.cfg.Changed()
}

// run runs the container until it has ended for good, or the context ends.
func (c *container) run(ctx context.Context) {
	c.pod.mu.Lock()
	ended := c.status.State.Terminated
	c.pod.mu.Unlock()
	if ended != nil {
		return
	}
	clk := c.pod.runner.cfg.Clock
	delay := time.Duration(0)
	for ctx.Err() == nil {
		begin := clk.Now()
		end, err := c.runOnce(ctx)
		wait, reason := delay, "CrashLoopBackOff"
		var message string
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait, reason, message = startRetry, "CreateContainerError", err.Error()
			if errors.Is(err, errConfig) {
				reason = "CreateContainerConfigError"
			}
			c.event(corev1.EventTypeWarning, "Failed", "Error: "+message)
		case !c.restarts(end.code):
			return
		default:
			if clk.Since(begin) > backoffReset {
				delay, wait = 0, 0
			}
			delay = min(max(2*delay, backoffFirst), backoffMax)
			message = fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", wait, c.spec.Name, c.pod.latest().Name)
		}
		if wait == 0 {
			continue
		}
		c.change(func() {
			if c.status.State.Terminated != nil {
				c.status.LastTerminationState = c.status.State
			}
			c.status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		})
		if err == nil {
			c.event(corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container "+c.spec.Name)
		}
		_ = host.Sleep(ctx, clk, wait) // the loop checks the context
	}
}

// runOnce starts the container and waits until it has ended.
func (c *container) runOnce(ctx context.Context) (exit, error) {
	if !c.isProcess() {
		return c.simulate(ctx), nil
	}
	c.pod.mu.Lock()
	attempt := c.starts
	c.pod.mu.Unlock()
	ch, logs, err := c.start(ctx, attempt)
	if err != nil {
		return exit{}, err
	}
	defer logs.close()
	running, cancel := context.WithCancel(ctx)
	c.begin(ch)
	c.event(corev1.EventTypeNormal, "Started", "Started container "+c.spec.Name)
	probes := c.startProbes(running)
	select {
	case <-ch.done:
	case <-ctx.Done():
		c.event(corev1.EventTypeNormal, "Killing", "Stopping container "+c.spec.Name)
		c.stop(ch, c.pod.untilDeadline)
	}
	cancel()
	probes.Wait()
	c.end(ch.exit, c.terminationMessage(attempt, ch.exit.code))
	return ch.exit, nil
}

func (c *container) start(ctx context.Context, attempt int32) (*child, *logFile, error) {
	command, err := c.command(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := c.createMessageFile(); err != nil {
		return nil, nil, err
	}
	logs, err := c.openLog(attempt)
	if err != nil {
		return nil, nil, err
	}
	command.home = c.homeDir()
	command.stdout, command.stderr = logs.stream("stdout"), logs.stream("stderr")
	ch, err := c.pod.runner.startChild(command)
	if err != nil {
		logs.close()
		return nil, nil, err
	}
	return ch, logs, nil
}

// IDPrefix begins the image ID of a container that is a process, followed by its program, and its container ID.
const IDPrefix = "process://"

// begin sets the status of a container that has started; ch is nil if it is simulated.
func (c *container) begin(ch *child) {
	c.change(func() {
		if c.status.State.Terminated != nil {
			c.status.LastTerminationState = c.status.State
		}
		c.status.RestartCount, c.child, c.reason = c.starts, ch, ""
		c.memory, c.cpu, c.measuredAt = 0, cpuRate{begin: c.pod.runner.cfg.Clock.Now()}, time.Time{}
		c.starts++
		c.status.ImageID, c.status.ContainerID = "simulated://"+c.spec.Image, "simulated://"+string(c.pod.pod.UID)
		if ch != nil {
			c.status.ImageID, c.status.ContainerID = IDPrefix+c.image.Program, IDPrefix+strconv.Itoa(ch.pid)
		}
		c.started = ch == nil || c.spec.StartupProbe == nil && c.postStartHook() == nil
		c.ready = ch == nil || c.spec.ReadinessProbe == nil
		c.status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.pod.runner.cfg.Clock.Now())}}
	})
}

// end sets the status of a container that has ended with a message.
func (c *container) end(end exit, message string) {
	c.change(func() {
		ended := &corev1.ContainerStateTerminated{
			ExitCode: end.code, Signal: end.signal, Reason: "Completed", StartedAt: c.status.State.Running.StartedAt,
			FinishedAt: metav1.NewTime(end.at), ContainerID: c.status.ContainerID, Message: message,
		}
		if end.code != 0 {
			ended.Reason = "Error"
		}
		if c.reason != "" {
			ended.Reason = c.reason
		}
		c.status.State, c.child = corev1.ContainerState{Terminated: ended}, nil
	})
}

// simulate runs a container without a process: an init container succeeds at once, a container of a Job after
// CompletionTime, and other containers run until the context ends.
func (c *container) simulate(ctx context.Context) exit {
	c.begin(nil)
	clk := c.pod.runner.cfg.Clock
	switch {
	case c.isInit() && !c.isSidecar():
	case IsOfJob(c.pod.latest()) && c.kind == podutil.Containers:
		_ = host.Sleep(ctx, clk, CompletionTime)
	default:
		<-ctx.Done()
	}
	end := exit{at: clk.Now()}
	c.end(end, "")
	return end
}

// IsOfJob reports whether a Pod is controlled by a Job: a simulated one succeeds after CompletionTime.
func IsOfJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

// kill stops the process. The container may be restarted.
func (c *container) kill(grace time.Duration) {
	if ch := c.running(); ch != nil {
		clk := c.pod.runner.cfg.Clock
		deadline := clk.Now().Add(grace)
		c.stop(ch, func() time.Duration { return deadline.Sub(clk.Now()) })
	}
}

// killAtDeadline kills the process at the Pod's deadline. It is called when the deadline has become earlier.
func (c *container) killAtDeadline() {
	ch := c.running()
	if ch == nil {
		return
	}
	c.pod.runner.ended.Go(func() {
		select {
		case <-ch.done:
		case <-c.pod.runner.cfg.Clock.After(c.pod.untilDeadline()):
			ch.signal(syscall.SIGKILL)
		}
	})
}

// running returns the container's process, nil if there is none.
func (c *container) running() *child {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	return c.child
}

// measured records the usage of the process, and kills it if it exceeds its memory limit.
func (c *container) measured(groups map[int]usage) {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	if c.child == nil {
		return
	}
	used, found := groups[c.child.pid]
	if !found {
		return // it has ended, or has been started since
	}
	c.measuredAt = c.pod.runner.cfg.Clock.Now()
	c.memory = used.memory
	c.cpu.sample(c.measuredAt, used.cpu)
	if limit := c.spec.Resources.Limits.Memory(); !limit.IsZero() && c.memory > limit.Value() {
		c.reason = "OOMKilled"
		c.child.signal(syscall.SIGKILL)
	}
}

func (c *container) event(kind, reason, message string) {
	c.pod.cfg.Event(kind, reason, message, c.spec.Name)
}

// homeDir returns the container's own folder. TMPDIR is in it.
func (c *container) homeDir() string { return filepath.Join(c.pod.dir, "containers", c.spec.Name) }
