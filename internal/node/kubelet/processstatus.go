package kubelet

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node/process"
)

// processStep returns the next step of a Pod that has processes: the status follows the processes, which are stopped
// when the Pod is deleted or its deadline has passed.
func processStep(pod *corev1.Pod, processes *process.Pod, now time.Time, hostIPs, podIPs []netip.Addr) podStep {
	if len(podIPs) > 0 {
		processes.Update(pod, podIPs)
	} else {
		processes.Update(pod, addressesIn(pod))
	}
	init, main, ephemeral := processes.Statuses()
	ended := false
	select {
	case <-processes.Done():
		ended = true
	default:
	}
	step := podStep{status: *pod.Status.DeepCopy()}
	if !podutil.IsPodTerminal(pod) {
		if pod.DeletionTimestamp == nil {
			setAddresses(&step.status, pod, now, hostIPs, podIPs)
		}
		setContainers(&step.status, pod, now, init, main, ended)
		step.status.EphemeralContainerStatuses = ephemeral
	}
	switch deadline := deadlineOf(&step.status, pod); {
	case pod.DeletionTimestamp != nil:
		processes.Stop(time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
		step.remove = ended
	case deadline.IsZero() || ended:
	case now.Before(deadline):
		step.next = deadline
	default:
		processes.Stop(process.Grace(pod))
		step.status.Reason, step.status.Message = reasonDeadlineExceeded, messageDeadlineExceeded
	}
	if ended && step.status.Reason == reasonDeadlineExceeded {
		step.status.Phase = corev1.PodFailed
	}
	return step
}

// deadlineOf returns when a Pod has to end; zero if it has no deadline.
func deadlineOf(status *corev1.PodStatus, pod *corev1.Pod) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || status.StartTime == nil {
		return time.Time{}
	}
	return status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

func addressesIn(pod *corev1.Pod) (all []netip.Addr) {
	for _, ip := range pod.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil {
			all = append(all, address)
		}
	}
	return all
}

// setContainers sets a Pod's phase and conditions according to the statuses of its containers.
func setContainers(status *corev1.PodStatus, pod *corev1.Pod, now time.Time, init, main []corev1.ContainerStatus, ended bool) {
	status.InitContainerStatuses, status.ContainerStatuses = init, main
	status.Phase = phaseOf(main, ended)
	initialized, ready := true, status.Phase == corev1.PodRunning
	for i, c := range pod.Spec.InitContainers {
		if podutil.IsRestartableInitContainer(&c) {
			initialized = initialized && ptr.Deref(init[i].Started, false)
			ready = ready && init[i].Ready
			continue
		}
		initialized = initialized && init[i].State.Terminated != nil && init[i].State.Terminated.ExitCode == 0
	}
	for _, c := range main {
		ready = ready && c.Ready
	}
	set := func(kind corev1.PodConditionType, is bool, reason string) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
		if !is {
			c.Status, c.Reason = corev1.ConditionFalse, reason
		}
		setCondition(status, pod, now, c)
	}
	notReady := "ContainersNotReady"
	switch status.Phase {
	case corev1.PodSucceeded:
		notReady, initialized = "PodCompleted", true
	case corev1.PodFailed:
		notReady = "PodFailed"
	}
	set(corev1.PodReadyToStartContainers, !ended, "")
	set(corev1.PodInitialized, initialized, "ContainersNotInitialized")
	set(corev1.ContainersReady, ready, notReady)
	if !ready {
		set(corev1.PodReady, false, notReady)
		return
	}
	setCondition(status, pod, now, readyOf(pod))
}

// phaseOf returns the phase of a Pod whose containers have these statuses; ended says that none of them will run again.
func phaseOf(main []corev1.ContainerStatus, ended bool) corev1.PodPhase {
	succeeded := func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
	}
	started := func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	}
	switch {
	case ended && !slices.ContainsFunc(main, func(c corev1.ContainerStatus) bool { return !succeeded(c) }):
		return corev1.PodSucceeded
	case ended:
		return corev1.PodFailed
	case slices.ContainsFunc(main, started):
		return corev1.PodRunning
	}
	return corev1.PodPending
}
