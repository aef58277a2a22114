package kubecontrollers

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// The values of Kubernetes' own pod garbage collector, whose package would add all of the kubelet to the binary.
const (
	podGCPeriod     = 20 * time.Second
	podGCQuarantine = 40 * time.Second
	podGCTerminated = 12500
)

// podGC deletes Pods that no kubelet deletes: those of missing Nodes, those that were deleted before they were
// scheduled, and the oldest of the terminated Pods if there are more than podGCTerminated.
type podGC struct {
	client kubernetes.Interface
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	// missing has the time since when a Node of Pods is missing.
	missing map[string]time.Time
}

func newPodGC(_ context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	core := c.informers.all.Core().V1()
	gc := &podGC{client: client, pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), missing: map[string]time.Time{}}
	synced := []func() bool{core.Pods().Informer().HasSynced, core.Nodes().Informer().HasSynced}
	return runFunc(func(ctx context.Context) {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if synced[0]() && synced[1]() {
				gc.collect(ctx, time.Now())
			}
		}, podGCPeriod)
	}), nil
}

// collect deletes the Pods that are due for deletion.
func (gc *podGC) collect(ctx context.Context, now time.Time) {
	pods, err := gc.pods.List(labels.Everything())
	if err != nil {
		return
	}
	var ended []*corev1.Pod
	missing := map[string]time.Time{}
	for _, pod := range pods {
		node := pod.Spec.NodeName
		switch {
		case node == "" && pod.DeletionTimestamp != nil:
			gc.delete(ctx, pod)
		case node != "" && gc.isMissing(ctx, node, now, missing):
			gc.deleteOrphan(ctx, pod)
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
			ended = append(ended, pod)
		}
	}
	gc.missing = missing
	slices.SortFunc(ended, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range ended[:max(len(ended)-podGCTerminated, 0)] {
		gc.delete(ctx, pod)
	}
}

// isMissing reports whether a Node has been missing for podGCQuarantine. It records in missing since when.
func (gc *podGC) isMissing(ctx context.Context, node string, now time.Time, missing map[string]time.Time) bool {
	if _, err := gc.nodes.Get(node); !apierrors.IsNotFound(err) {
		return false
	}
	since, known := gc.missing[node]
	if !known {
		since = now
	}
	missing[node] = since
	if now.Sub(since) < podGCQuarantine {
		return false
	}
	_, err := gc.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// deleteOrphan writes the reason to the status of the Pod, then deletes the Pod.
func (gc *podGC) deleteOrphan(ctx context.Context, pod *corev1.Pod) {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		patch := []byte(`{"status":{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByPodGC",` +
			`"message":"PodGC: node no longer exists","lastTransitionTime":"` + time.Now().UTC().Format(time.RFC3339) + `"}]}}`)
		_, err := gc.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "Cannot write the status of a Pod whose Node is gone", "pod", klog.KObj(pod))
			return
		}
	}
	gc.delete(ctx, pod)
}

func (gc *podGC) delete(ctx context.Context, pod *corev1.Pod) {
	err := gc.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot delete a Pod", "pod", klog.KObj(pod))
	}
}
