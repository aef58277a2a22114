package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gardenlite/gardenlite/internal/garbage"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/host"
)

const (
	// podRetry is the delay before a failed step is retried.
	podRetry = time.Second
	// loadDelay is how long Pods change before garbage is collected less often. Without it, 100 Pods that start at once
	// take 28 MB more.
	loadDelay = 5 * time.Second
)

// errSyncAll says that the Stages or the mapped images have changed, so that all Pods are listed and synced again.
var errSyncAll = errors.New("the Stages or the mapped images have changed")

// runningPods contains a channel for each running Pod, which is closed when the Pod has ended.
type runningPods struct {
	mu  sync.Mutex
	all map[types.NamespacedName]chan struct{}
}

// set records whether a Pod runs.
func (r *runningPods) set(pod types.NamespacedName, runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := r.all[pod]
	switch {
	case runs && end == nil:
		if r.all == nil {
			r.all = map[types.NamespacedName]chan struct{}{}
		}
		r.all[pod] = make(chan struct{})
	case !runs && end != nil:
		close(end)
		delete(r.all, pod)
	}
}

// keep ends the Pods that are not in the list: they were deleted while they were not watched.
func (r *runningPods) keep(pods []corev1.Pod) {
	listed := sets.New[types.NamespacedName]()
	for i := range pods {
		listed.Insert(keyOf(&pods[i]))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for pod, end := range r.all {
		if !listed.Has(pod) {
			close(end)
			delete(r.all, pod)
		}
	}
}

// ended returns a channel that is closed when a Pod has ended; nil if the Pod does not run.
func (r *runningPods) ended(pod types.NamespacedName) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[pod]
}

// podRunner runs the Pods of a node: it simulates them, except those with a mapped image. It keeps no Pods.
type podRunner struct {
	kubelet *Kubelet
	config  node.KubeletConfig
	host    host.Host
	client  *apiclient.Client
	// network is the range of the Pods' addresses; it is not valid until it has been read from the Node.
	network netip.Prefix
	// addresses are the addresses in use, with the UIDs of their Pods.
	addresses map[netip.Addr]types.UID
	// due contains when the next step of a Pod is due.
	due map[types.NamespacedName]time.Time
	// plays contains the Stages for which Pods wait.
	plays map[types.NamespacedName]stagePlay
}

// runPods runs the Pods of the node until the context ends.
func (k *Kubelet) runPods(ctx context.Context, client *apiclient.Client, config node.KubeletConfig) {
	h := k.host
	backoff := host.Backoff{First: retryFirst, Max: retryMax}
	for {
		r := &podRunner{
			kubelet: k, config: config, host: h, client: client, addresses: map[netip.Addr]types.UID{},
			due: map[types.NamespacedName]time.Time{}, plays: map[types.NamespacedName]stagePlay{},
		}
		begin := h.Clock.Now()
		err := r.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if h.Clock.Since(begin) > retryMax {
			backoff.Reset()
		}
		if errors.Is(err, errSyncAll) {
			continue
		}
		if !errors.Is(err, io.EOF) {
			h.Logf("trying again: %v", err)
		}
		if host.Sleep(ctx, h.Clock, backoff.Next()) != nil {
			return
		}
	}
}

// run lists the Pods of the node and watches them, until an error, the end of the watch or a change of the Stages.
func (r *podRunner) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	images := r.kubelet.processes.imagesChanged()
	pods := r.client.Core.Pods(metav1.NamespaceAll)
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=" + r.host.Hostname}
	list, err := pods.List(ctx, options)
	if err != nil {
		return fmt.Errorf("listing the Pods of the node: %w", err)
	}
	if err := r.kubelet.processes.keepOnly(r.host.Hostname, list.Items); err != nil {
		return fmt.Errorf("ending the processes of Pods that are gone: %w", err)
	}
	r.kubelet.running.keep(list.Items)
	for i := range list.Items {
		r.remember(&list.Items[i])
	}
	for i := range list.Items {
		r.sync(ctx, &list.Items[i])
	}
	options.ResourceVersion = list.ResourceVersion
	w, err := pods.Watch(ctx, options)
	if err != nil {
		return fmt.Errorf("watching the Pods of the node: %w", err)
	}
	defer w.Stop()
	timer := r.host.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(r.untilDue())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-w.ResultChan():
			pod, err := apiclient.ObjectOf[*corev1.Pod](event, open)
			if err != nil {
				return err
			}
			if event.Type == watch.Deleted {
				r.cleanUp(pod)
			} else {
				r.sync(ctx, pod)
			}
		case <-r.kubelet.processes.changed:
			for _, pod := range r.kubelet.processes.takeDirty() {
				r.sync(ctx, pod)
			}
		case <-r.kubelet.stages.changed:
			return errSyncAll
		case <-images:
			return errSyncAll
		case <-timer.C():
			r.syncDue(ctx)
		}
	}
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// remember records the addresses of a Pod.
func (r *podRunner) remember(pod *corev1.Pod) {
	if pod.Spec.HostNetwork || podutil.IsPodTerminal(pod) {
		return
	}
	for _, address := range addressesIn(pod) {
		r.addresses[address] = pod.UID
	}
}

// cleanUp releases the resources of a deleted Pod, and ends its processes.
func (r *podRunner) cleanUp(pod *corev1.Pod) {
	delete(r.due, keyOf(pod))
	delete(r.plays, keyOf(pod))
	r.release(pod)
	r.kubelet.running.set(keyOf(pod), false)
	if err := r.kubelet.processes.stopPod(pod); err != nil {
		r.host.Logf("removing what is left of Pod %s: %v", keyOf(pod), err)
	}
}

func (r *podRunner) release(pod *corev1.Pod) {
	maps.DeleteFunc(r.addresses, func(_ netip.Addr, uid types.UID) bool { return uid == pod.UID })
}

// untilDue returns the time until the next step is due, one hour at most.
func (r *podRunner) untilDue() time.Duration {
	wait := time.Hour
	for _, due := range r.due {
		wait = min(wait, due.Sub(r.host.Clock.Now()))
	}
	return max(wait, 0)
}

// syncDue syncs the Pods whose next step is due.
func (r *podRunner) syncDue(ctx context.Context) {
	now := r.host.Clock.Now()
	for key, due := range r.due {
		if now.Before(due) {
			continue
		}
		delete(r.due, key)
		pod, err := r.client.Core.Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // the Node authorizer refuses Pods that are not on the node
		case err != nil:
			r.failed(ctx, key, err)
		case r.kubelet.processes.replacedBy(pod): // the events follow, of its deletion first
		case pod.Spec.NodeName == r.host.Hostname:
			r.sync(ctx, pod)
		}
	}
}

// sync takes the next step of a Pod, and records when the following one is due.
func (r *podRunner) sync(ctx context.Context, pod *corev1.Pod) {
	key := keyOf(pod)
	r.kubelet.firstPod()
	delete(r.due, key)
	if err := r.trySync(ctx, key, pod); err != nil {
		r.failed(ctx, key, err)
	}
}

func (r *podRunner) failed(ctx context.Context, key types.NamespacedName, err error) {
	if ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the Pod has changed since: an event follows
		return
	}
	r.host.Logf("trying again with Pod %s in %s: %v", key, podRetry, err)
	r.due[key] = r.host.Clock.Now().Add(podRetry)
}

// replace deletes a simulated Pod, in whose place its controller makes one that runs as a process.
func (r *podRunner) replace(ctx context.Context, pod *corev1.Pod) error {
	r.kubelet.writeEvent(ctx, r.client, podEvent{pod: pod, kind: corev1.EventTypeNormal, reason: "Killing",
		message: "The image is mapped to a program now: the Pod is replaced by one that runs it"})
	if err := r.client.Core.Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID))); err != nil {
		return fmt.Errorf("deleting a Pod whose image is mapped now: %w", err)
	}
	return nil
}

func (r *podRunner) trySync(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) error {
	ips, err := r.addressesOf(ctx, pod)
	if err != nil {
		return err
	}
	processes := r.kubelet.processes.ensure(pod, r.host, r.config)
	if r.kubelet.processes.outdated(pod) {
		return r.replace(ctx, pod)
	}
	var step podStep
	if processes != nil {
		step = processStep(pod, processes, r.host.Clock.Now(), r.host.Addresses, ips)
	} else {
		var byStages bool
		if step, byStages, err = r.playStage(ctx, pod, ips); err != nil {
			return err
		} else if !byStages {
			step = stepOf(pod, r.host.Clock.Now(), r.host.Addresses, ips)
		}
	}
	if !equality.Semantic.DeepEqual(step.status, pod.Status) {
		garbage.ReportLoad(loadDelay)
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion}, "status": step.status})
		if err == nil {
			err = r.patch(ctx, key, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			return fmt.Errorf("writing the status: %w", err)
		}
		if processes == nil {
			r.record(ctx, pod, step.status.Phase)
		}
	}
	r.kubelet.running.set(key, step.status.Phase == corev1.PodRunning)
	if step.remove {
		if err := r.deletePod(ctx, pod); err != nil {
			return err
		}
	}
	if podutil.IsPodPhaseTerminal(step.status.Phase) {
		r.release(pod)
	}
	if !step.next.IsZero() {
		r.due[key] = step.next
	}
	return nil
}

func (r *podRunner) patch(ctx context.Context, key types.NamespacedName, kind types.PatchType, patch []byte,
	options metav1.PatchOptions, subresources ...string) error {
	_, err := r.client.Core.Pods(key.Namespace).Patch(ctx, key.Name, kind, patch, options, subresources...)
	return err
}

func (r *podRunner) deletePod(ctx context.Context, pod *corev1.Pod) error {
	options := *metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	if err := r.client.Core.Pods(pod.Namespace).Delete(ctx, pod.Name, options); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	return nil
}

// addressesOf returns the addresses of a Pod, and assigns one if the Pod has none.
func (r *podRunner) addressesOf(ctx context.Context, pod *corev1.Pod) ([]netip.Addr, error) {
	if pod.Spec.HostNetwork {
		return r.host.Addresses, nil
	}
	if podutil.IsPodTerminal(pod) || pod.DeletionTimestamp != nil {
		return nil, nil
	}
	var own []netip.Addr
	for address, uid := range r.addresses {
		if uid == pod.UID {
			own = append(own, address)
		}
	}
	if len(own) > 0 {
		return own, nil
	}
	if !r.network.IsValid() {
		node, err := r.client.Core.Nodes().Get(ctx, r.host.Hostname, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading the Node: %v", err) // not found is no error of the Pod, after which an event follows
		}
		network, err := netip.ParsePrefix(node.Spec.PodCIDR)
		if err != nil {
			return nil, errors.New("the Node has no range for the addresses of Pods yet (spec.podCIDR)")
		}
		r.network = network
	}
	// The first two addresses are the network's and the gateway's.
	for address := r.network.Masked().Addr().Next().Next(); r.network.Contains(address); address = address.Next() {
		if _, taken := r.addresses[address]; !taken {
			r.addresses[address] = pod.UID
			return []netip.Addr{address}, nil
		}
	}
	return nil, fmt.Errorf("all addresses of the Node's range %s are taken", r.network)
}

// record writes the Events of a change of the phase.
func (r *podRunner) record(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) {
	reason, message := "Started", "Started container "
	switch {
	case pod.DeletionTimestamp != nil && !podutil.IsPodTerminal(pod):
		reason, message = "Killing", "Stopping container "
	case phase != corev1.PodRunning || pod.Status.Phase == corev1.PodRunning:
		return
	}
	for _, c := range pod.Spec.Containers {
		r.kubelet.writeEvent(ctx, r.client, podEvent{pod, corev1.EventTypeNormal, reason, message + c.Name, c.Name})
	}
}
