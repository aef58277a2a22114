package kubelet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node/process"
)

const (
	reasonCompleted         = "Completed"
	reasonDeadlineExceeded  = "DeadlineExceeded"
	messageDeadlineExceeded = "Pod was active on the node longer than the specified deadline"
)

// podStep is the next step of a Pod.
type podStep struct {
	// status is the new status of the Pod.
	status corev1.PodStatus
	// remove says that the Pod has ended and is to be deleted from the API.
	remove bool
	// next is when the following step is due; zero if it waits for a change of the Pod.
	next time.Time
}

// stepOf returns the next step of a simulated Pod: its containers run at once and without an error. The Pods of Jobs
// succeed after process.CompletionTime, other Pods run until they are deleted. hostIPs are the addresses of the node.
func stepOf(pod *corev1.Pod, now time.Time, hostIPs, podIPs []netip.Addr) podStep {
	step := podStep{status: *pod.Status.DeepCopy()}
	ended := podutil.IsPodTerminal(pod)
	if pod.DeletionTimestamp != nil {
		if stop := stopOf(pod); pod.Status.Phase == corev1.PodRunning && now.Before(stop) {
			step.next = stop
			return step
		}
		step.remove = true
		if !ended {
			end(&step.status, pod, now, corev1.PodSucceeded)
		}
		return step
	}
	if ended {
		return step
	}
	start(&step.status, pod, now, hostIPs, podIPs)
	deadline := deadlineOf(&step.status, pod)
	if !deadline.IsZero() && !now.Before(deadline) {
		end(&step.status, pod, now, corev1.PodFailed)
		step.status.Reason, step.status.Message = reasonDeadlineExceeded, messageDeadlineExceeded
		return step
	}
	step.next = deadline
	if process.IsOfJob(pod) {
		completion := step.status.StartTime.Add(process.CompletionTime)
		if !now.Before(completion) {
			end(&step.status, pod, now, corev1.PodSucceeded)
			step.next = time.Time{}
			return step
		}
		if step.next.IsZero() || completion.Before(step.next) {
			step.next = completion
		}
	}
	return step
}

// stopOf returns when the containers of a Pod in deletion end: after the longest sleep of a preStop hook, but not later
// than the grace period allows.
func stopOf(pod *corev1.Pod) time.Time {
	var sleep time.Duration
	for _, c := range pod.Spec.Containers {
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep != nil {
			sleep = max(sleep, time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second)
		}
	}
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	return pod.DeletionTimestamp.Add(min(sleep, grace) - grace)
}

// start sets the status of a Pod whose containers all run.
func start(status *corev1.PodStatus, pod *corev1.Pod, now time.Time, hostIPs, podIPs []netip.Addr) {
	status.Phase = corev1.PodRunning
	setAddresses(status, pod, now, hostIPs, podIPs)
	status.InitContainerStatuses = containerStatuses(pod, pod.Spec.InitContainers, status.InitContainerStatuses, now, true)
	status.ContainerStatuses = containerStatuses(pod, pod.Spec.Containers, status.ContainerStatuses, now, false)
	var debug []corev1.Container
	for _, c := range pod.Spec.EphemeralContainers {
		debug = append(debug, corev1.Container(c.EphemeralContainerCommon))
	}
	status.EphemeralContainerStatuses = containerStatuses(pod, debug, status.EphemeralContainerStatuses, now, false)
	for i := range status.EphemeralContainerStatuses {
		status.EphemeralContainerStatuses[i].Ready = false // it is not probed, and does not count
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady} {
		setCondition(status, pod, now, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	setCondition(status, pod, now, readyOf(pod))
}

// setAddresses sets the addresses of the node and the Pod, the start time and the observed generation.
func setAddresses(status *corev1.PodStatus, pod *corev1.Pod, now time.Time, hostIPs, podIPs []netip.Addr) {
	status.ObservedGeneration = pod.Generation
	status.StartTime = cmp.Or(status.StartTime, ptr.To(metav1.NewTime(now)))
	status.HostIPs, status.PodIPs = nil, nil
	for _, ip := range hostIPs {
		status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: ip.String()})
	}
	for _, ip := range podIPs {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip.String()})
	}
	if len(hostIPs) > 0 {
		status.HostIP = hostIPs[0].String()
	}
	if len(podIPs) > 0 {
		status.PodIP = podIPs[0].String()
	}
}

// readyOf returns the condition Ready of a Pod whose containers are ready. It depends on the readiness gates.
func readyOf(pod *corev1.Pod) corev1.PodCondition {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	for _, gate := range pod.Spec.ReadinessGates {
		if !isTrue(pod.Status.Conditions, gate.ConditionType) {
			ready.Status, ready.Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
			ready.Message = "corresponding condition of pod readiness gate \"" + string(gate.ConditionType) + "\" is not \"True\"."
		}
	}
	return ready
}

// end sets the status of a Pod whose containers have all ended.
func end(status *corev1.PodStatus, pod *corev1.Pod, now time.Time, phase corev1.PodPhase) {
	status.Phase, status.ObservedGeneration = phase, pod.Generation
	reason, code, conditionReason := reasonCompleted, int32(0), "PodCompleted"
	if phase == corev1.PodFailed {
		reason, code, conditionReason = "Error", 137, "PodFailed" // 137: SIGKILL
	}
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses,
		status.EphemeralContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			s.Ready, s.Started = false, ptr.To(false)
			if s.State.Running != nil {
				s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: code, Reason: reason, StartedAt: s.State.Running.StartedAt, FinishedAt: metav1.NewTime(now), ContainerID: s.ContainerID,
				}}
			}
		}
	}
	setCondition(status, pod, now, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse})
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(status, pod, now, corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: conditionReason})
	}
}

// containerStatuses returns the statuses of running containers. Init containers, except sidecars, have already ended.
func containerStatuses(pod *corev1.Pod, containers []corev1.Container, before []corev1.ContainerStatus, now time.Time,
	isInit bool) []corev1.ContainerStatus {
	if len(containers) == 0 {
		return nil
	}
	all := make([]corev1.ContainerStatus, 0, len(containers))
	for _, c := range containers {
		status := corev1.ContainerStatus{Name: c.Name}
		if i := slices.IndexFunc(before, func(s corev1.ContainerStatus) bool { return s.Name == c.Name }); i >= 0 {
			status = before[i]
		}
		status.Image, status.ImageID, status.Ready, status.Started = c.Image, "sha256:"+hexSum(c.Image), true, ptr.To(true)
		status.ContainerID = "containerd://" + hexSum(string(pod.UID), c.Name, c.Image)
		status.AllocatedResources, status.Resources = c.Resources.Requests, nil
		if len(c.Resources.Requests)+len(c.Resources.Limits) > 0 {
			status.Resources = &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits}
		}
		switch at := metav1.NewTime(now); {
		case isInit && !podutil.IsRestartableInitContainer(&c):
			status.Started = ptr.To(false)
			if status.State.Terminated == nil {
				status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Reason: reasonCompleted, StartedAt: at, FinishedAt: at, ContainerID: status.ContainerID,
				}}
			}
		case status.State.Running == nil:
			status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
		}
		all = append(all, status)
	}
	return all
}

// setCondition sets a condition, which keeps its transition time if its status stays.
func setCondition(status *corev1.PodStatus, pod *corev1.Pod, now time.Time, c corev1.PodCondition) {
	c.ObservedGeneration, c.LastTransitionTime = pod.Generation, metav1.NewTime(now)
	i := slices.IndexFunc(status.Conditions, func(other corev1.PodCondition) bool { return other.Type == c.Type })
	if i < 0 {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = c
}

func isTrue(conditions []corev1.PodCondition, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// hexSum returns a digest that depends only on its arguments.
func hexSum(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
