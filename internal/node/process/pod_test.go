package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

// world is a Runner with a clock that stands still, and one mapped image.
type world struct {
	*Runner
	clock  *clocktesting.FakeClock
	mu     sync.Mutex
	events []string
}

const imageName = "example.com/program"

// newWorld maps the image to a shell script.
func newWorld(t *testing.T, script string) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return startWorld(t, t.TempDir(), path)
}

func startWorld(t *testing.T, dir, program string) *world {
	t.Helper()
	w := &world{clock: clocktesting.NewFakeClock(time.Now())}
	var err error
	w.Runner, err = Start(Config{Dir: dir, Images: &Images{fixed: []Image{{Reference: imageName, Program: program}}},
		Clock: w.clock, Log: testr.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func newPod(name string, policy corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-of-" + name)},
		Spec: corev1.PodSpec{
			RestartPolicy: policy, TerminationGracePeriodSeconds: ptr.To[int64](30),
			Containers: []corev1.Container{{Name: "main", Image: imageName}},
		},
	}
}

func (w *world) run(pod *corev1.Pod) *Pod {
	return w.NewPod(PodConfig{Node: "node", APIServer: "https://127.0.0.1:1", Changed: func() {}, Event: func(_, reason, message, _ string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, reason+": "+message)
	}}, pod)
}

// until waits until the status of the first container is as it should be.
func until(t *testing.T, p *Pod, what string, is func(corev1.ContainerStatus) bool) corev1.ContainerStatus {
	t.Helper()
	var status corev1.ContainerStatus
	testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
		_, main, _ := p.Statuses()
		if status = main[0]; !is(status) {
			return fmt.Errorf("the container is not %s: %+v", what, status)
		}
		return nil
	})
	return status
}

func waits(reason string) func(corev1.ContainerStatus) bool {
	return func(s corev1.ContainerStatus) bool { return s.State.Waiting != nil && s.State.Waiting.Reason == reason }
}

func runs(s corev1.ContainerStatus) bool { return s.State.Running != nil }

// A container that fails is restarted at once, then after 10 s, and then after twice the delay each time, up to 5
// minutes.
func TestCrashLoop(t *testing.T) {
	w := newWorld(t, "exit 3")
	p := w.run(newPod("crashes", corev1.RestartPolicyAlways))
	wait := 10 * time.Second
	for restarts := int32(1); restarts < 8; restarts++ {
		s := until(t, p, "waiting", func(s corev1.ContainerStatus) bool { return waits("CrashLoopBackOff")(s) && s.RestartCount == restarts })
		if last := s.LastTerminationState.Terminated; last == nil || last.ExitCode != 3 || last.Reason != "Error" {
			t.Errorf("it has ended with %+v", last)
		}
		if want := "back-off " + wait.String(); !strings.HasPrefix(s.State.Waiting.Message, want) {
			t.Errorf("restart %d: %q, want %q", restarts, s.State.Waiting.Message, want)
		}
		testutil.EventuallyTrue(t, "the container waits", w.clock.HasWaiters)
		w.clock.Step(wait)
		wait = min(2*wait, 5*time.Minute)
	}
}

func TestRestartPolicies(t *testing.T) {
	for _, test := range []struct {
		policy   corev1.RestartPolicy
		code     int
		restarts bool
	}{
		{corev1.RestartPolicyNever, 0, false}, {corev1.RestartPolicyNever, 1, false},
		{corev1.RestartPolicyOnFailure, 0, false}, {corev1.RestartPolicyOnFailure, 1, true},
		{corev1.RestartPolicyAlways, 0, true},
	} {
		t.Run(fmt.Sprintf("%s-%d", test.policy, test.code), func(t *testing.T) {
			w := newWorld(t, "exit "+strconv.Itoa(test.code))
			p := w.run(newPod("p", test.policy))
			if test.restarts {
				until(t, p, "waiting", waits("CrashLoopBackOff"))
				return
			}
			<-p.Done()
			if s := until(t, p, "terminated", func(s corev1.ContainerStatus) bool { return s.State.Terminated != nil }); s.State.
				Terminated.ExitCode != int32(test.code) || s.RestartCount != 0 {
				t.Errorf("it has ended as %+v", s)
			}
		})
	}
}

// The status names a program that is missing when the container starts; the start is retried.
func TestMissingProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "later")
	w := startWorld(t, t.TempDir(), program)
	p := w.run(newPod("p", corev1.RestartPolicyAlways))
	s := until(t, p, "waiting", waits("CreateContainerError"))
	if want := "program " + program + ": no such file or directory"; s.State.Waiting.Message != want {
		t.Errorf("%q, want %q", s.State.Waiting.Message, want)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000"), 0o700); err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyTrue(t, "the container waits", w.clock.HasWaiters)
	w.clock.Step(startRetry)
	until(t, p, "running", runs)
}

// A process that ignores SIGTERM is killed after its grace period, together with its children.
func TestGracePeriod(t *testing.T) {
	w := newWorld(t, "trap 'echo asked' TERM; sleep 1000 & echo child $!; while :; do wait; done")
	p := w.run(newPod("p", corev1.RestartPolicyAlways))
	until(t, p, "running", runs)
	child := 0
	w.untilLog(t, p, func(log string) bool { n, _ := fmt.Sscanf(log, "child %d", &child); return n == 1 })
	p.Stop(30 * time.Second)
	// The signal ends the child, but not its parent.
	w.untilLog(t, p, func(log string) bool { return strings.Contains(log, "asked") })
	w.clock.Step(29 * time.Second)
	select {
	case <-p.Done():
		t.Fatal("the process was ended before its grace period was over")
	default:
	}
	w.clock.Step(time.Second)
	<-p.Done()
	if s := until(t, p, "terminated",
		func(s corev1.ContainerStatus) bool { return s.State.Terminated != nil }); s.State.Terminated.ExitCode != 137 {
		t.Errorf("it has ended as %+v", s.State.Terminated)
	}
	testutil.EventuallyTrue(t, "the process's child has ended", func() bool { return !isRunning(t, child) })
	if notes, err := os.ReadDir(filepath.Join(w.cfg.Dir, pidsFolder)); err != nil || len(notes) > 0 {
		t.Errorf("notes of processes that have ended: %v, %v", notes, err)
	}
}

// What leaves the process group ends with its container: each start, and nothing of another container.
func TestDaemon(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the environment of other processes is not known")
	}
	w := newWorld(t, `case $1 in
  daemon) HOME=/ setsid sleep 1000 & echo daemon $!; TMPDIR=/ setsid sleep 1000 & echo daemon $!; read line < $HOME/go;;
  *) exec sleep 1000;;
esac`)
	pod := newPod("p", corev1.RestartPolicyAlways)
	pod.Spec.Containers[0].Args = []string{"daemon"}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "main-2", Image: imageName})
	home := filepath.Join(w.podDir(string(pod.UID)), "containers", "main")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(home, "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.run(pod)
	var daemons [2]int
	started := func(log string) bool {
		n, _ := fmt.Sscanf(log, "daemon %d\ndaemon %d", &daemons[0], &daemons[1])
		return n == 2
	}
	until(t, p, "running", runs)
	w.untilLog(t, p, started)
	testutil.EventuallyTrue(t, "the other container runs", func() bool { return p.main[1].running() != nil })
	other := p.main[1].running().pid
	first := daemons
	if err := os.WriteFile(fifo, []byte("\n"), 0o600); err != nil { // the container ends, and is restarted at once
		t.Fatal(err)
	}
	until(t, p, "restarted", func(s corev1.ContainerStatus) bool { return s.RestartCount == 1 && runs(s) })
	w.untilLog(t, p, started)
	for _, daemon := range first {
		testutil.EventuallyTrue(t, "the daemon of the first start has ended", func() bool { return !isRunning(t, daemon) })
	}
	if !isRunning(t, other) || !isRunning(t, daemons[0]) || !isRunning(t, daemons[1]) {
		t.Error("the other container or the daemon of the second start has ended")
	}
	p.Stop(0)
	<-p.Done()
	for _, daemon := range daemons {
		testutil.EventuallyTrue(t, "the daemon has ended", func() bool { return !isRunning(t, daemon) })
	}
}

func (w *world) untilLog(t *testing.T, p *Pod, is func(string) bool) {
	t.Helper()
	testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
		if log := logOf(t, p, false); !is(log) {
			return fmt.Errorf("the log is %q", log)
		}
		return nil
	})
}

// isRunning reports whether a process, or another one of its group, runs.
func isRunning(t *testing.T, pid int) bool {
	t.Helper()
	all, err := listProcesses()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(p processInfo) bool { return p.pid == pid || p.group == pid })
}

func logOf(t *testing.T, p *Pod, previous bool) string {
	t.Helper()
	var log bytes.Buffer
	if err := p.Logs(t.Context(), &corev1.PodLogOptions{Container: "main", Previous: previous}, &log); err != nil &&
		!strings.Contains(err.Error(), "no such file") {
		t.Fatal(err)
	}
	return log.String()
}

// The logs of the last two starts are kept.
func TestLogs(t *testing.T) {
	w := newWorld(t, `echo to stdout; echo to stderr >&2; printf 'no end of line'; exit 1`)
	p := w.run(newPod("p", corev1.RestartPolicyOnFailure))
	until(t, p, "waiting", waits("CrashLoopBackOff"))
	for _, previous := range []bool{false, true} {
		log := logOf(t, p, previous)
		for _, line := range []string{"to stdout\n", "to stderr\n", "no end of line"} {
			if !strings.Contains(log, line) {
				t.Errorf("previous %t: the log %q does not have %q", previous, log, line)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "logs", "main", "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("the logs are %v, %v", files, err)
	}
}

// A log that becomes too large is rotated, and one older part is kept.
func TestLogIsLimited(t *testing.T) {
	l := &logFile{path: filepath.Join(t.TempDir(), "0.log"), now: time.Now, limit: 100}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for range 100 {
		if _, err := l.stream("stdout").Write([]byte("a line\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{l.path, l.path + olderPart} {
		if info, err := os.Stat(path); err != nil || info.Size() > 200 || info.Size() == 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

// A process that exceeds its memory limit is killed and restarted.
func TestMemoryLimit(t *testing.T) {
	w := newWorld(t, "exec sleep 1000")
	pod := newPod("p", corev1.RestartPolicyAlways)
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1")}
	p := w.run(pod)
	until(t, p, "running", runs)
	testutil.EventuallyTrue(t, "the process is measured", func() bool {
		if w.clock.HasWaiters() {
			w.clock.Step(sampleInterval)
		}
		_, main, _ := p.Statuses()
		last := main[0].LastTerminationState.Terminated
		return last != nil && last.Reason == "OOMKilled" && last.ExitCode == 137
	})
}

// The next Runner kills the processes that a former one has left behind, and their children, but not another process
// whose PID is recorded.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	w := startWorld(t, dir, "/bin/true")
	start := func(home string) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", "sleep 1000 & setsid sleep 1000 & wait")
		cmd.Env, cmd.SysProcAttr = []string{"HOME=" + home}, &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
		return cmd
	}
	home := filepath.Join(dir, podsFolder, "uid", "containers", "main")
	left, other := start(home), start("/")
	inHome := func(count int) func() bool {
		return func() bool {
			pids, err := processesIn(home)
			return err == nil && (len(pids) == count || runtime.GOOS != "linux")
		}
	}
	testutil.EventuallyTrue(t, "a process with a child and a daemon runs", inHome(3))
	if err := w.writePID(left.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.pidFile(other.Process.Pid), []byte("another time"), 0o600); err != nil {
		t.Fatal(err)
	}
	startWorld(t, dir, "/bin/true")
	if state, err := left.Process.Wait(); err != nil || state.Success() {
		t.Errorf("what was left behind: %v, %v", state, err)
	}
	testutil.EventuallyTrue(t, "what it has started has ended", func() bool { return !isRunning(t, left.Process.Pid) && inHome(0)() })
	if err := syscall.Kill(other.Process.Pid, 0); err != nil {
		t.Errorf("another process with a noted number: %v", err)
	}
	if notes, err := os.ReadDir(filepath.Join(dir, pidsFolder)); err != nil || len(notes) > 0 {
		t.Errorf("notes that are left: %v, %v", notes, err)
	}
}

// A Pod that ran before a restart of gardenlite continues, with one more restart of its containers; a container that
// had ended is not restarted.
func TestGoesOn(t *testing.T) {
	w := newWorld(t, "exec sleep 1000")
	pod := newPod("p", corev1.RestartPolicyOnFailure)
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "ended", Image: imageName})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "main", RestartCount: 2, ContainerID: "process://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
	}
	p := w.run(pod)
	s := until(t, p, "running", runs)
	if last := s.LastTerminationState.Terminated; s.RestartCount != 3 || last == nil || last.ContainerID != "process://1" {
		t.Errorf("the container that ran: %+v", s)
	}
	if _, main, _ := p.Statuses(); main[1].State.Terminated == nil || main[1].RestartCount != 0 {
		t.Errorf("the container that had ended: %+v", main[1])
	}
}

// Init containers run one after the other before the containers; sidecars run beside the containers until these have
// ended.
func TestInitContainers(t *testing.T) {
	w := newWorld(t, `case $1 in first|second) exit 0;; sidecar) exec sleep 1000;; *) exit 0;; esac`)
	pod := newPod("p", corev1.RestartPolicyNever)
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "first", Image: imageName, Args: []string{"first"}},
		{Name: "sidecar", Image: imageName, Args: []string{"sidecar"}, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		{Name: "second", Image: imageName, Args: []string{"second"}},
	}
	p := w.run(pod)
	<-p.Done()
	init, main, _ := p.Statuses()
	for _, s := range append(init, main...) {
		if s.State.Terminated == nil || s.Name != "sidecar" && s.State.Terminated.ExitCode != 0 {
			t.Errorf("container %s: %+v", s.Name, s.State)
		}
	}
	if init[1].State.Terminated.FinishedAt.Time.Before(main[0].State.Terminated.FinishedAt.Time) {
		t.Error("the sidecar has ended before the container")
	}
}

// An init container that fails for good ends the Pod.
func TestInitContainerFails(t *testing.T) {
	w := newWorld(t, "exit $1")
	pod := newPod("p", corev1.RestartPolicyNever)
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: imageName, Args: []string{"4"}}}
	p := w.run(pod)
	<-p.Done()
	if init, main, _ := p.Statuses(); init[0].State.Terminated.ExitCode != 4 || main[0].State.Waiting == nil {
		t.Errorf("init %+v, main %+v", init[0].State, main[0].State)
	}
}

// withHooks returns a Pod whose container has hooks; they run the program with their arguments.
func withHooks(postStart, preStop *corev1.LifecycleHandler) *corev1.Pod {
	pod := newPod("p", corev1.RestartPolicyNever)
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: postStart, PreStop: preStop}
	return pod
}

func execHook(argument string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/hook", argument}}}
}

const hooked = `case $1 in
  post) while [ ! -e $HOME/go ]; do sleep 0.05; done;;
  pre) touch $HOME/pre;;
  fail) echo no >&2; exit 1;;
  *) exec sleep 1000;;
esac`

// A container is ready after its postStart hook, and is asked to end after its preStop hook.
func TestHooks(t *testing.T) {
	w := newWorld(t, hooked)
	p := w.run(withHooks(execHook("post"), execHook("pre")))
	if s := until(t, p, "running", runs); s.Ready || *s.Started {
		t.Errorf("before its hook has ended, the container is %+v", s)
	}
	home := filepath.Join(p.dir, "containers", "main")
	if err := os.WriteFile(filepath.Join(home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, p, "ready", func(s corev1.ContainerStatus) bool { return s.Ready && *s.Started })
	p.Stop(30 * time.Second)
	<-p.Done()
	if _, err := os.Stat(filepath.Join(home, "pre")); err != nil {
		t.Errorf("the preStop hook did not run: %v", err)
	}
}

// A container whose postStart hook fails is ended, and a failed hook is an Event.
func TestHookFails(t *testing.T) {
	w := newWorld(t, hooked)
	p := w.run(withHooks(execHook("fail"), execHook("fail")))
	<-p.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range []string{"FailedPostStartHook: PostStartHook failed: no\n", "FailedPreStopHook: PreStopHook failed: no\n"} {
		if !slices.Contains(w.events, event) {
			t.Errorf("there is no Event %q: %q", event, w.events)
		}
	}
}

// A preStop hook that runs when the process ends is ended with it, and has not failed.
func TestProcessEndsDuringHook(t *testing.T) {
	w := newWorld(t, `case $1 in
  pre) touch $HOME/pre; exec sleep 1000;;
  *) while [ ! -e $HOME/pre ]; do sleep 0.05; done;;
esac`)
	p := w.run(withHooks(nil, execHook("pre")))
	until(t, p, "running", runs)
	p.Stop(30 * time.Second)
	<-p.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.events, func(event string) bool { return strings.HasPrefix(event, "FailedPreStopHook") }) {
		t.Errorf("the hook has failed: %q", w.events)
	}
}

// A hook that sleeps is a part of the grace period.
func TestHookSleeps(t *testing.T) {
	sleeps := &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}
	for _, grace := range []time.Duration{30 * time.Second, 5 * time.Second} {
		w := newWorld(t, "exec sleep 1000")
		p := w.run(withHooks(nil, sleeps))
		until(t, p, "running", runs)
		pid := p.main[0].running().pid
		p.Stop(grace)
		// The waiters are the hook, the grace period, the measurement of memory, and the update of the volumes.
		testutil.EventuallyTrue(t, "the hook sleeps", func() bool { return w.clock.Waiters() == 4 })
		w.clock.Step(min(grace, 10*time.Second) - time.Second)
		if !isRunning(t, pid) {
			t.Error("the process has ended before its hook")
		}
		w.clock.Step(time.Second)
		<-p.Done()
	}
}
