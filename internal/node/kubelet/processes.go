package kubelet

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/process"
)

const (
	// stopGrace is the maximum grace period of processes when their node stops.
	stopGrace = 30 * time.Second
	// maxEvents is the maximum number of Events that wait to be written; further ones are dropped.
	maxEvents = 200
)

// processes are the Pods of the node that run as processes of this machine. They outlive connections to the API server.
type processes struct {
	runner *process.Runner // nil if all Pods are simulated
	client atomic.Pointer[apiclient.Client]
	events chan podEvent
	// changed receives a value when a Pod is added to dirty.
	changed chan struct{}

	mu    sync.Mutex
	pods  map[types.NamespacedName]*process.Pod
	dirty map[types.NamespacedName]bool
	// simulated are the Pods that were seen before their image was mapped: they stay simulated until they are replaced.
	simulated map[types.UID]bool
}

// podEvent is the content of an Event of a Pod; container is empty if the Event is about the Pod as a whole.
type podEvent struct {
	pod                              *corev1.Pod
	kind, reason, message, container string
}

func newProcesses(runner *process.Runner) *processes {
	return &processes{
		runner: runner, events: make(chan podEvent, maxEvents), changed: make(chan struct{}, 1), pods: map[types.NamespacedName]*process.Pod{},
		dirty: map[types.NamespacedName]bool{}, simulated: map[types.UID]bool{},
	}
}

// of returns the processes of a Pod, nil if it is simulated.
func (p *processes) of(key types.NamespacedName) *process.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pods[key]
}

// replacedBy reports whether there are still processes of an earlier Pod with the name of this one.
func (p *processes) replacedBy(pod *corev1.Pod) bool {
	known := p.of(keyOf(pod))
	return known != nil && known.UID() != string(pod.UID)
}

// all returns the Pods that have processes.
func (p *processes) all() []*process.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.pods))
}

// ensure returns the processes of a Pod, and starts them if its image is mapped; nil if the Pod is simulated.
func (p *processes) ensure(pod *corev1.Pod, h host.Host, config node.KubeletConfig) *process.Pod {
	if p.runner == nil {
		return nil
	}
	key := keyOf(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.pods[key]; known != nil && known.UID() == string(pod.UID) {
		return known
	}
	if p.simulated[pod.UID] || podutil.IsPodTerminal(pod) {
		return nil
	}
	if !p.runner.HasMappedImage(pod) {
		p.simulated[pod.UID] = true
		return nil
	}
	p.pods[key] = p.runner.NewPod(process.PodConfig{
		Node: h.Hostname, Cluster: h.Metadata.Cluster, APIServer: config.APIServer, CA: []byte(config.CA), Client: p.client.Load,
		Changed: func() { p.note(key) },
		Event: func(kind, reason, message, container string) {
			select {
			case p.events <- podEvent{pod, kind, reason, message, container}:
			default:
			}
		},
	}, pod)
	return p.pods[key]
}

// outdated reports whether a Pod is simulated although its image is mapped by now, and has a controller that makes another.
func (p *processes) outdated(pod *corev1.Pod) bool {
	if p.runner == nil || pod.DeletionTimestamp != nil || podutil.IsPodTerminal(pod) || metav1.GetControllerOf(pod) == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.simulated[pod.UID] && p.runner.HasMappedImage(pod)
}

// imagesChanged returns a channel that is closed when the mapped images change.
func (p *processes) imagesChanged() <-chan struct{} {
	if p.runner == nil {
		return nil
	}
	return p.runner.ImagesChanged()
}

// note marks the status of a Pod to be written.
func (p *processes) note(key types.NamespacedName) {
	p.mu.Lock()
	p.dirty[key] = true
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// takeDirty returns the Pods whose status has to be written, and resets their marks.
func (p *processes) takeDirty() []*corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*corev1.Pod
	for key := range p.dirty {
		if pod := p.pods[key]; pod != nil {
			all = append(all, pod.Object())
		}
	}
	clear(p.dirty)
	return all
}

// stopPod ends the processes of a deleted Pod, and removes its files.
func (p *processes) stopPod(pod *corev1.Pod) error {
	p.mu.Lock()
	key := keyOf(pod)
	running := p.pods[key]
	delete(p.simulated, pod.UID)
	if running == nil || running.UID() != string(pod.UID) {
		p.mu.Unlock()
		return nil
	}
	delete(p.pods, key)
	p.mu.Unlock()
	running.Stop(0)
	<-running.Done()
	return running.Remove()
}

// keepOnly ends the processes of all Pods that are not in the list, and removes their files.
func (p *processes) keepOnly(nodeName string, pods []corev1.Pod) error {
	if p.runner == nil {
		return nil
	}
	listed := map[string]bool{}
	for i := range pods {
		listed[string(pods[i].UID)] = true
	}
	p.mu.Lock()
	var gone []*corev1.Pod
	for _, pod := range p.pods {
		if !listed[pod.UID()] {
			gone = append(gone, pod.Object())
		}
	}
	maps.DeleteFunc(p.simulated, func(uid types.UID, _ bool) bool { return !listed[string(uid)] })
	p.mu.Unlock()
	for _, pod := range gone {
		if err := p.stopPod(pod); err != nil {
			return err
		}
	}
	p.runner.CleanUp(func(node, uid string) bool { return node == nodeName && !listed[uid] })
	return nil
}

// stop ends all processes within their grace periods.
func (p *processes) stop() {
	p.mu.Lock()
	pods := p.pods
	p.pods = map[types.NamespacedName]*process.Pod{}
	p.mu.Unlock()
	for _, pod := range pods {
		pod.Stop(min(process.Grace(pod.Object()), stopGrace))
	}
	for _, pod := range pods {
		<-pod.Done()
	}
}

// writeEvents writes Events until the context ends.
func (k *Kubelet) writeEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case news := <-k.processes.events:
			k.writeEvent(ctx, k.processes.client.Load(), news)
		}
	}
}

func (k *Kubelet) writeEvent(ctx context.Context, client *apiclient.Client, news podEvent) {
	pod, now := news.pod, metav1.NewTime(k.host.Clock.Now())
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion,
		},
		Type: news.kind, Reason: news.reason, Message: news.message,
		Source:         corev1.EventSource{Component: "kubelet", Host: k.host.Hostname},
		FirstTimestamp: now, LastTimestamp: now, Count: 1, ReportingController: "kubelet", ReportingInstance: k.host.Hostname,
	}
	if news.container != "" {
		event.InvolvedObject.FieldPath = "spec.containers{" + news.container + "}"
	}
	// A namespace in deletion refuses new Events.
	if _, err := client.Core.Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil &&
		ctx.Err() == nil && !apierrors.IsForbidden(err) {
		k.host.Logf("writing an Event: %v", err)
	}
}
