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
	"k8s.io/utils/ptr"
)

const (
	// backoffFirst, backoffMax and backoffReset are the kubelet's: how long a container that has failed waits, and how long
	// it has to run until that begins anew.
	backoffFirst = 10 * time.Second
	backoffMax   = 5 * time.Minute
	backoffReset = 2 * backoffMax
	// startRetry is when it is tried again to start a container that could not be started.
	startRetry = 10 * time.Second
	// CompletionTime is how long a simulated container of a Job runs.
	CompletionTime = time.Second
)

// container is one container of a Pod. Fields below the Pod's mutex are guarded by it.
type container struct {
	pod    *Pod
	spec   *corev1.Container
	isInit bool
	image  Image // not valid if the container is simulated

	// Guarded by pod.mu.
	status corev1.ContainerStatus
	starts int32
	child  *child
	// memory and cpu are what the process uses, in bytes and CPUs; measuredAt is zero until that is known.
	memory     int64
	cpu        cpuRate
	measuredAt time.Time
	// ready says that the readiness probe succeeds, started that the startup probe has.
	ready, started bool
	reason         string // why the process is ended, if the node ends it
	changed        chan struct{}
}

// newContainer makes a container that continues from what the API knows of it: one that has ended for good stays so.
func (p *Pod) newContainer(spec *corev1.Container, before []corev1.ContainerStatus, isInit bool) *container {
	c := &container{pod: p, spec: spec, isInit: isInit, changed: make(chan struct{}, 1)}
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
	case ended != nil && !isInit && !c.restarts(ended.ExitCode):
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
	if c.status.LastTerminationState.Terminated != nil {
		c.status.RestartCount, c.starts = last.RestartCount, last.RestartCount+1
	}
	return c
}

func (c *container) isSidecar() bool {
	return c.isInit && ptr.Deref(c.spec.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

func (c *container) isProcess() bool { return c.image.Program != "" }

// restarts says whether the container is started again after it has ended.
func (c *container) restarts(code int32) bool {
	policy := c.pod.latest().Spec.RestartPolicy
	switch {
	case c.isSidecar():
		return true
	case c.isInit && policy == corev1.RestartPolicyAlways: // until it succeeds
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

// awaitStarted waits until a sidecar has started.
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

// change changes the status, and has the API know.
func (c *container) change(change func()) {
	c.pod.mu.Lock()
	change()
	running := c.status.State.Running != nil
	c.status.Started = ptr.To(running && c.started)
	c.status.Ready = running && c.started && c.ready || c.isInit && !c.isSidecar() && c.status.State.Terminated != nil &&
		c.status.State.Terminated.ExitCode == 0
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
		select {
		case <-ctx.Done():
		case <-clk.After(wait):
		}
	}
}

// runOnce starts the container and waits until it has ended.
func (c *container) runOnce(ctx context.Context) (exit, error) {
	if !c.isProcess() {
		return c.simulate(ctx), nil
	}
	ch, logs, err := c.start(ctx)
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
	c.end(ch.exit)
	return ch.exit, nil
}

// start starts the container's process.
func (c *container) start(ctx context.Context) (*child, *logFile, error) {
	command, err := c.command(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.pod.mu.Lock()
	attempt := c.starts
	c.pod.mu.Unlock()
	logs, err := c.openLog(attempt)
	if err != nil {
		return nil, nil, err
	}
	command.stdout, command.stderr = logs.stream("stdout"), logs.stream("stderr")
	ch, err := c.pod.runner.startChild(command)
	if err != nil {
		logs.close()
		return nil, nil, err
	}
	return ch, logs, nil
}

// begin notes that the container runs.
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
			c.status.ImageID, c.status.ContainerID = "process://"+c.image.Program, "process://"+strconv.Itoa(ch.pid)
		}
		c.started = ch == nil || c.spec.StartupProbe == nil && c.postStartHook() == nil
		c.ready = ch == nil || c.spec.ReadinessProbe == nil
		c.status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.pod.runner.cfg.Clock.Now())}}
	})
}

// end notes that the container has ended.
func (c *container) end(end exit) {
	c.change(func() {
		ended := &corev1.ContainerStateTerminated{
			ExitCode: end.code, Signal: end.signal, Reason: "Completed", StartedAt: c.status.State.Running.StartedAt,
			FinishedAt: metav1.NewTime(end.at), ContainerID: c.status.ContainerID,
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

// simulate has a container run without a process: that of a Job succeeds, and so does one that is to be initialized with.
func (c *container) simulate(ctx context.Context) exit {
	c.begin(nil)
	clk := c.pod.runner.cfg.Clock
	switch {
	case c.isInit && !c.isSidecar():
	case IsOfJob(c.pod.latest()) && !c.isSidecar():
		select {
		case <-ctx.Done():
		case <-clk.After(CompletionTime):
		}
	default:
		<-ctx.Done()
	}
	end := exit{at: clk.Now()}
	c.end(end)
	return end
}

// IsOfJob says whether a Pod is of a Job: simulated, it succeeds after CompletionTime.
func IsOfJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job"
}

// kill ends the process, which may be started again.
func (c *container) kill(grace time.Duration) {
	if ch := c.running(); ch != nil {
		clk := c.pod.runner.cfg.Clock
		deadline := clk.Now().Add(grace)
		c.stop(ch, func() time.Duration { return deadline.Sub(clk.Now()) })
	}
}

// hurry ends the process of a Pod whose time to end has become shorter.
func (c *container) hurry() {
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

// measured notes what the process uses, and ends it if that is more memory than its limit.
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

// homeDir is the folder that the container has for itself, TMPDIR is in it.
func (c *container) homeDir() string { return filepath.Join(c.pod.dir, "containers", c.spec.Name) }
