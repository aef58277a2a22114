package stackmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

// availability returns the condition Ready of an install: whether its controller runs, and if not, why. The condition
// is empty if nothing is installed.
func (r *Reconciler) availability(ctx context.Context, install v1alpha1.Install) v1alpha1.Condition {
	key := client.ObjectKeyFromObject(install)
	stack := &v1alpha1.Stack{}
	if err := r.Live.Get(ctx, key, stack); err != nil || !metav1.IsControlledBy(stack, install) {
		return v1alpha1.Condition{}
	}
	available := v1alpha1.Condition{Type: v1alpha1.Ready, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonAvailable}
	ref := controllerRef(stack)
	completed := stack.Annotations[completedAnnotation]
	if ref == nil || completed != "" && completed == install.State().Digest {
		return available
	}
	var controller client.Object = &appsv1.Deployment{}
	if ref.Kind == "Job" {
		controller = &batchv1.Job{}
	}
	err := r.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, controller)
	if apierrors.IsNotFound(err) {
		return notReady(v1alpha1.ReasonUnavailable, fmt.Sprintf("the %s %s is being created", ref.Kind, ref.Name))
	}
	if err != nil {
		return notReady(v1alpha1.ReasonUnavailable, err.Error())
	}
	ready, message := controllerReady(controller)
	if ready {
		return available
	}
	return notReady(v1alpha1.ReasonUnavailable, cmp.Or(r.podProblem(ctx, key), message))
}

// settleTime is how long the processes of a controller must have run until it counts as available: one that exits at
// once is ready before.
const settleTime = 2 * time.Second

// processPrefix begins the IDs of containers that are processes of this machine. Others are simulated, and do not exit.
const processPrefix = "process://"

// settling returns a waiting error until a Pod of the controller has only containers that keep running.
func (r *Reconciler) settling(ctx context.Context, key client.ObjectKey, digest string) error {
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(key.Namespace),
		client.MatchingLabels{stackLabel: key.Name}); err != nil {
		return err
	}
	left := settleTime
	for _, pod := range pods.Items {
		if pod.Annotations[digestAnnotation] != digest {
			continue
		}
		wait := r.untilSettled(&pod)
		if wait <= 0 {
			return nil
		}
		left = min(left, wait)
	}
	message := cmp.Or(r.podProblem(ctx, key), "the controller has just been started: waiting whether it keeps running")
	return waiting{errors.New(message), left}
}

// untilSettled returns how long the youngest process of a Pod still has to run.
func (r *Reconciler) untilSettled(pod *corev1.Pod) (wait time.Duration) {
	for _, status := range pod.Status.ContainerStatuses {
		switch running := status.State.Running; {
		case running == nil:
			return settleTime
		case strings.HasPrefix(status.ContainerID, processPrefix):
			wait = max(wait, settleTime-r.Clock.Since(running.StartedAt.Time))
		}
	}
	return wait
}

func controllerReady(controller client.Object) (bool, string) {
	if job, ok := controller.(*batchv1.Job); ok {
		return jobReady(job)
	}
	return deploymentReady(controller.(*appsv1.Deployment))
}

func deploymentReady(deployment *appsv1.Deployment) (bool, string) {
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return false, fmt.Sprintf("the Deployment %s is being rolled out", deployment.Name)
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.Status == corev1.ConditionTrue, fmt.Sprintf("the Deployment %s: %s", deployment.Name, condition.Message)
		}
	}
	return false, fmt.Sprintf("the Deployment %s has no Pod yet", deployment.Name)
}

// jobReady reports whether the Job has a ready Pod or has succeeded.
func jobReady(job *batchv1.Job) (bool, string) {
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			return false, fmt.Sprintf("the Job %s has failed: %s", job.Name, condition.Message)
		}
	}
	ready := job.Status.Ready != nil && *job.Status.Ready > 0 || job.Status.Succeeded > 0
	return ready, fmt.Sprintf("the Job %s has no Pod that is ready yet", job.Name)
}

// podProblem returns why a container of the controller does not run, or "" if no reason is found.
func (r *Reconciler) podProblem(ctx context.Context, key client.ObjectKey) string {
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(key.Namespace), client.MatchingLabels{stackLabel: key.Name}); err != nil {
		return ""
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, pod := range slices.Backward(pods.Items) {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if waiting := status.State.Waiting; waiting != nil && waiting.Message != "" {
				return fmt.Sprintf("container %s of the Pod %s: %s: %s", status.Name, pod.Name, waiting.Reason, waiting.Message)
			}
			if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
				return fmt.Sprintf("container %s of the Pod %s ended with status %d: %s", status.Name, pod.Name, ended.ExitCode, ended.Reason)
			}
		}
	}
	return ""
}
