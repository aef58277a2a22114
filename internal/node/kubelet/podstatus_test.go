package kubelet

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node/process"
)

var (
	now     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hostIPs = []netip.Addr{netip.MustParseAddr("10.250.0.4")}
	podIPs  = []netip.Addr{netip.MustParseAddr("100.96.1.2")}
)

func newPod(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1", Generation: 3},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: ptr.To(true)}}
	}
}

// run takes a Pod through all steps until a time, as the kubelet does.
func run(t *testing.T, pod *corev1.Pod, until time.Time) podStep {
	t.Helper()
	at := now
	for {
		step := stepOf(pod, at, hostIPs, podIPs)
		pod.Status = step.status
		if again := stepOf(pod, at, hostIPs, podIPs); !equality.Semantic.DeepEqual(again.status, step.status) {
			t.Fatalf("the same step twice gives %+v, then %+v", step.status, again.status)
		}
		if step.next.IsZero() || step.next.After(until) {
			return step
		}
		if !step.next.After(at) {
			t.Fatalf("the next step is due at %s, which is not after %s", step.next, at)
		}
		at = step.next
	}
}

func TestPodRuns(t *testing.T) {
	pod := newPod(func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "once"}, {Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger"}}}
	})
	step := run(t, pod, now.Add(24*time.Hour))
	s := step.status
	if s.Phase != corev1.PodRunning || step.remove || !step.next.IsZero() || s.PodIP != "100.96.1.2" ||
		s.HostIP != "10.250.0.4" || s.ObservedGeneration != 3 {
		t.Errorf("the step is %+v", step)
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady, corev1.ContainersReady,
		corev1.PodInitialized, corev1.PodReadyToStartContainers} {
		if !isTrue(s.Conditions, kind) {
			t.Errorf("%s is not true", kind)
		}
	}
	if c := s.ContainerStatuses[0]; c.State.Running == nil || !c.Ready || !*c.Started || c.ContainerID == "" || c.ImageID == "" {
		t.Errorf("the container is %+v", c)
	}
	if once, sidecar := s.InitContainerStatuses[0], s.InitContainerStatuses[1]; once.State.Terminated == nil || sidecar.State.Running == nil {
		t.Errorf("the init containers are %+v, %+v", once, sidecar)
	}
	if c := s.EphemeralContainerStatuses[0]; c.State.Running == nil || c.Ready {
		t.Errorf("the ephemeral container is %+v", c)
	}
}

func TestPodOfJobSucceeds(t *testing.T) {
	step := run(t, newPod(ownedBy("Job")), now.Add(process.CompletionTime))
	if c := step.status.ContainerStatuses[0].State.Terminated; step.status.Phase != corev1.PodSucceeded || c == nil ||
		c.ExitCode != 0 || isTrue(step.status.Conditions, corev1.PodReady) {
		t.Errorf("the step is %+v", step)
	}
	if step := run(t, newPod(ownedBy("ReplicaSet")), now.Add(process.CompletionTime)); step.status.Phase != corev1.PodRunning {
		t.Errorf("the Pod of a ReplicaSet is %s", step.status.Phase)
	}
}

func TestPodDeadline(t *testing.T) {
	step := run(t, newPod(func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](5) }), now.Add(time.Minute))
	c := step.status.ContainerStatuses[0].State.Terminated
	if step.status.Phase != corev1.PodFailed || step.status.Reason != "DeadlineExceeded" || c == nil ||
		c.FinishedAt.Sub(now) != 5*time.Second || c.ExitCode == 0 {
		t.Errorf("the step is %+v", step)
	}
}

// A deleted Pod ends before it is removed, and one that has ended stays as it is.
func TestPodDeleted(t *testing.T) {
	pod := newPod(nil)
	run(t, pod, now)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(now.Add(30*time.Second))), ptr.To[int64](30)
	step := stepOf(pod, now.Add(time.Second), hostIPs, nil)
	if !step.remove || step.status.Phase != corev1.PodSucceeded || step.status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("the step is %+v", step)
	}
	pod.Status = step.status
	pod.Status.Phase = corev1.PodFailed
	if step := stepOf(pod, now.Add(2*time.Second), hostIPs, nil); !step.remove || step.status.Phase != corev1.PodFailed {
		t.Errorf("the step is %+v", step)
	}
}

// A deleted Pod runs while its preStop hooks sleep, but not longer than its grace period, which may become shorter.
func TestPodGracePeriod(t *testing.T) {
	pod := newPod(func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 20}}}
	})
	run(t, pod, now)
	for _, test := range []struct{ grace, runs int64 }{{30, 20}, {5, 5}, {0, 0}} {
		pod.DeletionGracePeriodSeconds = ptr.To(test.grace)
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(time.Duration(test.grace) * time.Second)))
		end := now.Add(time.Duration(test.runs) * time.Second)
		if step := stepOf(pod, end.Add(-time.Second), hostIPs, nil); test.runs > 0 &&
			(step.remove || step.status.Phase != corev1.PodRunning || !step.next.Equal(end)) {
			t.Errorf("with a grace period of %d s, the step before the end is %+v", test.grace, step)
		}
		if step := stepOf(pod, end, hostIPs, nil); !step.remove || step.status.Phase != corev1.PodSucceeded {
			t.Errorf("with a grace period of %d s, the step is %+v", test.grace, step)
		}
	}
}

func TestPodReadinessGates(t *testing.T) {
	pod := newPod(func(pod *corev1.Pod) {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}
	})
	if s := run(t, pod, now).status; isTrue(s.Conditions, corev1.PodReady) || !isTrue(s.Conditions, corev1.ContainersReady) {
		t.Errorf("without its gate, the conditions are %+v", s.Conditions)
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/ready", Status: corev1.ConditionTrue})
	if s := run(t, pod, now).status; !isTrue(s.Conditions, corev1.PodReady) || !isTrue(s.Conditions, "example.com/ready") {
		t.Errorf("with its gate, the conditions are %+v", s.Conditions)
	}
}
