package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/fsutil"
	"github.com/gardenlite/gardenlite/internal/node/apiclient"
	"github.com/gardenlite/gardenlite/internal/node/host"
)

// prepareRetry is the delay before the preparation of a Pod's volumes is retried.
const prepareRetry = time.Second

// PodConfig configures a Pod; the kubelet sets it.
type PodConfig struct {
	// Node is the name of the Pod's Node; no two Nodes of a landscape have the same.
	Node string
	// Cluster is the name of the cluster, which no other cluster of the landscape has.
	Cluster string
	// APIServer and CA are the URL of the API server for which the Pod's identity is valid, and its CA.
	APIServer string
	CA        []byte
	// Client returns the current client of the node.
	Client func() *apiclient.Client
	// Changed is called when the statuses of the containers have changed, Event for each Event to write; container is
	// empty if it is about the Pod as a whole. Both must return soon.
	Changed func()
	Event   func(kind, reason, message, container string)
}

// Pod is a Pod with containers that run as processes. Containers whose image is not mapped are simulated.
type Pod struct {
	cfg    PodConfig
	runner *Runner
	dir    string
	// ctx ends when the Pod has to end, done is closed when it has ended.
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	// refresh triggers an update of the volumes.
	refresh chan struct{}

	// init and main are the containers, in their order.
	init, main []*container
	// added receives a value when ephemeral containers are added.
	added chan struct{}

	mu        sync.Mutex
	pod       *corev1.Pod
	ephemeral []*container
	addresses []netip.Addr
	// deadline is when processes that were asked to end are killed.
	deadline time.Time
	tokens   map[string]token
	// persistent has the folders of the volumes that are PersistentVolumeClaims, by the volumes' names.
	persistent map[string]string
}

// NewPod starts a Pod, which runs until it is stopped.
func (r *Runner) NewPod(cfg PodConfig, pod *corev1.Pod) *Pod {
	p := &Pod{
		cfg: cfg, runner: r, dir: r.podDir(string(pod.UID)), done: make(chan struct{}), refresh: make(chan struct{}, 1),
		added: make(chan struct{}, 1), pod: pod.DeepCopy(), tokens: map[string]token{}, persistent: map[string]string{},
	}
	p.ctx, p.cancel = context.WithCancel(r.ctx)
	for i := range pod.Spec.InitContainers {
		c := p.newContainer(&p.pod.Spec.InitContainers[i], pod.Status.InitContainerStatuses, podutil.InitContainers)
		p.init = append(p.init, c)
	}
	for i := range pod.Spec.Containers {
		p.main = append(p.main, p.newContainer(&p.pod.Spec.Containers[i], pod.Status.ContainerStatuses, podutil.Containers))
	}
	p.addEphemeral()
	r.mu.Lock()
	r.pods[p] = struct{}{}
	r.mu.Unlock()
	r.ended.Go(p.run)
	return p
}

// UID returns the UID of the Pod.
func (p *Pod) UID() string { return string(p.latest().UID) }

// addEphemeral adds the ephemeral containers that are new. It is called with p.mu held, or before the Pod runs.
func (p *Pod) addEphemeral() {
	for i := range p.pod.Spec.EphemeralContainers {
		spec := (*corev1.Container)(&p.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		known := slices.ContainsFunc(p.ephemeral, func(c *container) bool { return c.spec.Name == spec.Name })
		if known || !isFolder(spec.Name) {
			continue
		}
		c := p.newContainer(spec, p.pod.Status.EphemeralContainerStatuses, podutil.EphemeralContainers)
		p.ephemeral = append(p.ephemeral, c)
		select {
		case p.added <- struct{}{}:
		default:
		}
	}
}

// containers returns all containers of the Pod.
func (p *Pod) containers() []*container {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Concat(p.init, p.main, p.ephemeral)
}

// Update stores a change of the Pod, and its addresses.
func (p *Pod) Update(pod *corev1.Pod, addresses []netip.Addr) {
	p.mu.Lock()
	before := p.pod
	p.pod, p.addresses = pod.DeepCopy(), addresses
	p.addEphemeral()
	p.mu.Unlock()
	// Volumes of the type downwardAPI may contain these.
	if !maps.Equal(before.Labels, pod.Labels) || !maps.Equal(before.Annotations, pod.Annotations) {
		p.refreshVolumes()
	}
}

// refreshVolumes triggers an update of the volumes.
func (p *Pod) refreshVolumes() {
	select {
	case p.refresh <- struct{}{}:
	default:
	}
}

// Object returns the Pod as it was updated last.
func (p *Pod) Object() *corev1.Pod { return p.latest().DeepCopy() }

func (p *Pod) latest() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pod
}

func (p *Pod) hasAddress(address netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.addresses, address)
}

// Stop ends the Pod within a grace period, or earlier than a former call did. It does not wait.
func (p *Pod) Stop(grace time.Duration) {
	deadline := p.runner.cfg.Clock.Now().Add(grace)
	p.mu.Lock()
	sooner := !p.deadline.IsZero() && deadline.Before(p.deadline)
	if p.deadline.IsZero() || sooner {
		p.deadline = deadline
	}
	p.mu.Unlock()
	p.cancel()
	if !sooner {
		return
	}
	for _, c := range p.containers() {
		c.killAtDeadline()
	}
}

// Done is closed when all of the Pod's processes have ended for good.
func (p *Pod) Done() <-chan struct{} { return p.done }

// Remove removes the Pod's files from this machine. Call it once the Pod has ended.
func (p *Pod) Remove() error {
	return errors.Join(p.runner.removeWorkOf(p.UID()), fsutil.RemoveAll(p.dir))
}

// Statuses returns the statuses of the init containers, of the containers and of the ephemeral containers.
func (p *Pod) Statuses() (init, main, ephemeral []corev1.ContainerStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return statusesOf(p.init), statusesOf(p.main), statusesOf(p.ephemeral)
}

func statusesOf(containers []*container) (all []corev1.ContainerStatus) {
	for _, c := range containers {
		all = append(all, *c.status.DeepCopy())
	}
	return all
}

// run runs the Pod from its volumes to the end of its last container.
func (p *Pod) run() {
	defer func() {
		p.runner.mu.Lock()
		delete(p.runner.pods, p)
		p.runner.mu.Unlock()
		close(p.done)
		p.cfg.Changed()
	}()
	next, ok := p.prepare()
	if !ok {
		return
	}
	refreshing, endRefreshing := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { p.keepVolumes(refreshing, next) })
	defer keeping.Wait()
	defer endRefreshing()

	// Sidecars end after the containers have.
	sidecars, endSidecars := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer endSidecars()
	ephemeral, endEphemeral := context.WithCancel(p.ctx)
	defer endEphemeral()
	running.Go(func() { p.runEphemeral(ephemeral) })
	for _, c := range p.init {
		if c.isSidecar() {
			running.Go(func() { c.run(sidecars) })
			if !c.awaitStarted(p.ctx) {
				return
			}
			continue
		}
		if c.run(p.ctx); !c.succeeded() {
			return
		}
	}
	var containers sync.WaitGroup
	for _, c := range p.main {
		containers.Go(func() { c.run(p.ctx) })
	}
	containers.Wait()
}

// runEphemeral runs the ephemeral containers, each as soon as it is added, until the context ends.
func (p *Pod) runEphemeral(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for started := 0; ; {
		p.mu.Lock()
		added := p.ephemeral[started:]
		p.mu.Unlock()
		for _, c := range added {
			running.Go(func() { c.run(ctx) })
		}
		started += len(added)
		select {
		case <-ctx.Done():
			return
		case <-p.added:
		}
	}
}

// prepare creates the Pod's folder with its volumes, and retries until it succeeds. It returns when the volumes have to
// be updated, and false only if the Pod has to end.
func (p *Pod) prepare() (next time.Time, ok bool) {
	var last string
	for {
		next, err := p.tryPrepare()
		if err == nil {
			return next, true
		}
		if err.Error() != last {
			last = err.Error()
			p.cfg.Event(corev1.EventTypeWarning, "FailedMount", last, "")
			p.message(last)
		}
		if host.Sleep(p.ctx, p.runner.cfg.Clock, prepareRetry) != nil {
			return time.Time{}, false
		}
	}
}

func (p *Pod) tryPrepare() (next time.Time, err error) {
	if err = os.MkdirAll(p.dir, 0o700); err == nil {
		err = fsutil.WriteFile(filepath.Join(p.dir, ownerFile), []byte(p.cfg.Node), 0o600)
	}
	if err != nil {
		return next, fmt.Errorf("making the Pod's folder: %w", err)
	}
	if err := p.discardVolumes(); err != nil {
		return next, err
	}
	return p.writeVolumes(p.ctx)
}

// message sets the message of the containers that wait.
func (p *Pod) message(text string) {
	containers := p.containers()
	p.mu.Lock()
	for _, c := range containers {
		if c.status.State.Waiting != nil {
			c.status.State.Waiting.Message = text
		}
	}
	p.mu.Unlock()
	p.cfg.Changed()
}

// Grace returns the grace period of a Pod.
func Grace(pod *corev1.Pod) time.Duration {
	return time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)) * time.Second
}

// untilDeadline returns the time that is left for the Pod's processes to end.
func (p *Pod) untilDeadline() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deadline.IsZero() { // the containers have ended, a sidecar has not
		return Grace(p.pod)
	}
	return max(0, p.deadline.Sub(p.runner.cfg.Clock.Now()))
}

// measured records the usage of the Pod's processes, by process group, and kills those that exceed their memory limit.
func (p *Pod) measured(groups map[int]usage) {
	for _, c := range p.containers() {
		c.measured(groups)
	}
}

func (p *Pod) processes() []Process {
	containers := p.containers()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Process
	for _, c := range containers {
		if c.child == nil || c.status.State.Running == nil {
			continue
		}
		all = append(all, Process{
			Node: p.cfg.Node, Namespace: p.pod.Namespace, Pod: p.pod.Name, Container: c.spec.Name, Program: c.image.Program,
			PID: c.child.pid, Memory: c.memory, Restarts: c.status.RestartCount, StartedAt: c.status.State.Running.StartedAt.Time,
		})
	}
	return all
}

// Listens reports whether one of the Pod's processes listens on a port: other ports are not reached through the Pod.
func (p *Pod) Listens(port int) bool {
	groups := p.groups()
	if len(groups) == 0 {
		return false
	}
	all, err := listProcesses()
	if err != nil {
		return false
	}
	var pids []int
	for _, process := range all {
		if slices.Contains(groups, process.group) {
			pids = append(pids, process.pid)
		}
	}
	return listens(pids, port)
}

func (p *Pod) groups() (all []int) {
	containers := p.containers()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range containers {
		if c.child != nil {
			all = append(all, c.child.pid)
		}
	}
	return all
}
