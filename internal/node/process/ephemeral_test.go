package process

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/internal/testutil"
)

func ephemeral(name, image string, args ...string) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: image, Args: args}}
}

// untilEphemeral waits until the statuses of the ephemeral containers are as they should be.
func untilEphemeral(t *testing.T, p *Pod, is func([]corev1.ContainerStatus) bool) []corev1.ContainerStatus {
	t.Helper()
	var all []corev1.ContainerStatus
	testutil.Eventually(t, testutil.Timeout, func(context.Context) error {
		if _, _, all = p.Statuses(); !is(all) {
			return fmt.Errorf("the ephemeral containers are %+v", all)
		}
		return nil
	})
	return all
}

// Ephemeral containers are added to a Pod that runs, run once, and end with the Pod. They are processes if their image is mapped.
func TestEphemeralContainers(t *testing.T) {
	w := newWorld(t, `case $1 in ends) echo of the first; exit 3;; *) exec sleep 1000;; esac`)
	pod := newPod("p", corev1.RestartPolicyAlways)
	p := w.run(pod)
	until(t, p, "running", runs)
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{ephemeral("ends", imageName, "ends")}
	p.Update(pod, nil)
	untilEphemeral(t, p, func(all []corev1.ContainerStatus) bool { return all[0].State.Terminated != nil })
	// The API does not promise their order.
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{ephemeral("runs", imageName), ephemeral("ends", imageName, "ends"),
		ephemeral("simulated", "example.com/other")}
	p.Update(pod, nil)
	all := untilEphemeral(t, p, func(all []corev1.ContainerStatus) bool { return len(all) == 3 && runs(all[1]) && runs(all[2]) })
	for i, name := range []string{"ends", "runs", "simulated"} {
		if s := all[i]; s.Name != name || s.Ready || s.RestartCount != 0 {
			t.Errorf("ephemeral container %s: %+v", name, s)
		}
	}
	if code := all[0].State.Terminated.ExitCode; code != 3 {
		t.Errorf("the first has ended with %d", code)
	}
	if main := until(t, p, "running", runs); main.RestartCount != 0 || !main.Ready {
		t.Errorf("the container is %+v", main)
	}
	if n := len(w.Processes()); n != 2 {
		t.Errorf("%d processes run", n)
	}
	p.Stop(30 * time.Second)
	<-p.Done()
	if _, _, all := p.Statuses(); all[1].State.Terminated == nil || all[2].State.Terminated == nil || len(w.Processes()) != 0 {
		t.Errorf("after the end of the Pod: %+v", all)
	}
}

// An ephemeral container ends with the last container of a Pod that completes.
func TestEphemeralContainerOfCompletedPod(t *testing.T) {
	w := newWorld(t, `case $1 in
  debug) trap 'exit 0' TERM; touch $HOME/up; while :; do sleep 0.05; done;;
  *) while [ ! -e $HOME/../debug/up ]; do sleep 0.05; done;;
esac`)
	pod := newPod("p", corev1.RestartPolicyNever)
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{ephemeral("debug", imageName, "debug")}
	p := w.run(pod)
	<-p.Done()
	_, main, all := p.Statuses()
	for _, s := range append(main, all...) {
		if s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 {
			t.Errorf("container %s: %+v", s.Name, s.State)
		}
	}
}

// An ephemeral container that ran or had ended before a restart of gardenlite is not started again.
func TestEphemeralContainersDoNotGoOn(t *testing.T) {
	w := newWorld(t, "exec sleep 1000")
	pod := newPod("p", corev1.RestartPolicyAlways)
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{ephemeral("ran", imageName), ephemeral("ended", imageName)}
	begin := metav1.NewTime(w.clock.Now())
	pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{
		{Name: "ran", ContainerID: "process://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: begin}}},
		{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
	}
	p := w.run(pod)
	until(t, p, "running", runs)
	_, _, all := p.Statuses()
	if ran := all[0].State.Terminated; ran == nil || ran.Reason != "ContainerStatusUnknown" || ran.StartedAt != begin {
		t.Errorf("the one that ran: %+v", all[0])
	}
	if ended := all[1].State.Terminated; ended == nil || ended.Reason != "Completed" {
		t.Errorf("the one that had ended: %+v", all[1])
	}
}
