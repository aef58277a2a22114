package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/metrics/pkg/apis/metrics"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"
)

const (
	// metricsWindow is the time for which a kubelet says how much of a CPU is used.
	metricsWindow = 10 * time.Second
	// kubeletTimeout is how long a kubelet has to answer, and kubeletsAtOnce how many are asked at a time.
	kubeletTimeout = 5 * time.Second
	kubeletsAtOnce = 16
	// processPrefix is what the ID of a container begins with that is a process.
	processPrefix = "process://"
)

// metricsPriority is where discovery lists metrics.k8s.io, as metrics-server asks for.
var metricsPriority = controlplaneapiserver.APIServicePriority{Group: 100, Version: 100}

var metricsScheme = newMetricsScheme()

func newMetricsScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{metrics.AddToScheme, metricsv1beta1.AddToScheme, func(s *runtime.Scheme) error {
		return s.SetVersionPriority(metricsv1beta1.SchemeGroupVersion)
	}} {
		if err := add(scheme); err != nil {
			panic(err) // the types do not fit together
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}

// newMetricsGroup makes the API group metrics.k8s.io, from which kubectl top reads. Nothing is measured or kept for it:
// each request asks the kubelets.
func newMetricsGroup(loopback *restclient.Config, clk clock.PassiveClock, log klog.Logger) (*genericapiserver.APIGroupInfo, error) {
	client, err := corev1client.NewForConfig(loopback)
	if err != nil {
		return nil, fmt.Errorf("making the client that asks kubelets: %w", err)
	}
	source := usageSource{client, clk, log}
	group := genericapiserver.NewDefaultAPIGroupInfo(metrics.GroupName, metricsScheme, metav1.ParameterCodec,
		serializer.NewCodecFactory(metricsScheme))
	group.VersionedResourcesStorageMap[metricsv1beta1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"pods":  &podMetrics{rest.NewDefaultTableConvertor(metrics.Resource("pods")), source},
		"nodes": &nodeMetrics{rest.NewDefaultTableConvertor(metrics.Resource("nodes")), source},
	}
	return &group, nil
}

// podStats are what the containers of Pods use, as a kubelet has measured it.
type podStats map[types.UID][]stats.ContainerStats

// usageSource knows what Pods use.
type usageSource struct {
	client corev1client.CoreV1Interface
	clock  clock.PassiveClock
	log    klog.Logger
}

// of returns what each Pod uses that runs on a node which answers, in the order of the Pods. A container that is a process uses
// what its kubelet has measured; a simulated one uses what it requests.
func (s usageSource) of(ctx context.Context, pods []corev1.Pod) []metrics.PodMetrics {
	nodes := sets.New[string]()
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			nodes.Insert(pods[i].Spec.NodeName)
		}
	}
	measured := s.askAll(ctx, nodes)
	all := []metrics.PodMetrics{}
	for i := range pods {
		pod := &pods[i]
		onNode, answered := measured[pod.Spec.NodeName]
		if !answered || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		containers, ok := usageOf(pod, onNode[pod.UID])
		if !ok {
			continue
		}
		all = append(all, metrics.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{
				Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels, CreationTimestamp: metav1.NewTime(s.clock.Now()),
			},
			Timestamp: metav1.NewTime(s.clock.Now()), Window: metav1.Duration{Duration: metricsWindow}, Containers: containers,
		})
	}
	return all
}

// askAll asks the kubelets of nodes. The result has those that answered.
func (s usageSource) askAll(ctx context.Context, nodes sets.Set[string]) map[string]podStats {
	var (
		mu     sync.Mutex
		all    = map[string]podStats{}
		asking errgroup.Group
	)
	asking.SetLimit(kubeletsAtOnce)
	for node := range nodes {
		asking.Go(func() error {
			pods, err := s.ask(ctx, node)
			if err != nil {
				s.log.V(1).Info("A kubelet does not say what its Pods use", "node", node, "error", err.Error())
				return nil // of the others it is known
			}
			mu.Lock()
			defer mu.Unlock()
			all[node] = pods
			return nil
		})
	}
	_ = asking.Wait()
	return all
}

// ask asks one kubelet what it has measured.
func (s usageSource) ask(ctx context.Context, node string) (podStats, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	data, err := s.client.RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	summary := &stats.Summary{}
	if err := json.Unmarshal(data, summary); err != nil {
		return nil, err
	}
	pods := podStats{}
	for _, pod := range summary.Pods {
		pods[types.UID(pod.PodRef.UID)] = pod.Containers
	}
	return pods, nil
}

// usageOf returns what the running containers of a Pod use, and false if that is not known yet of one that is a process.
func usageOf(pod *corev1.Pod, measured []stats.ContainerStats) (all []metrics.ContainerMetrics, ok bool) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.State.Running == nil {
			continue
		}
		usage := corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}}
		i := slices.IndexFunc(measured, func(s stats.ContainerStats) bool { return s.Name == status.Name })
		switch {
		case i >= 0 && measured[i].CPU != nil && measured[i].CPU.UsageNanoCores != nil && measured[i].Memory != nil &&
			measured[i].Memory.WorkingSetBytes != nil:
			usage[corev1.ResourceCPU] = *resource.NewScaledQuantity(int64(*measured[i].CPU.UsageNanoCores), resource.Nano)
			usage[corev1.ResourceMemory] = *resource.NewQuantity(int64(*measured[i].Memory.WorkingSetBytes), resource.BinarySI)
		case strings.HasPrefix(status.ContainerID, processPrefix):
			return nil, false
		default:
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				if c.Name == status.Name {
					usage[corev1.ResourceCPU], usage[corev1.ResourceMemory] = *c.Resources.Requests.Cpu(), *c.Resources.Requests.Memory()
				}
			}
		}
		all = append(all, metrics.ContainerMetrics{Name: status.Name, Usage: usage})
	}
	return all, true
}

// podMetrics serves what Pods use.
type podMetrics struct {
	rest.TableConvertor
	source usageSource
}

// New implements rest.Storage.
func (*podMetrics) New() runtime.Object { return &metrics.PodMetrics{} }

// NewList implements rest.Lister.
func (*podMetrics) NewList() runtime.Object { return &metrics.PodMetricsList{} }

// Destroy implements rest.Storage.
func (*podMetrics) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*podMetrics) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (*podMetrics) GetSingularName() string { return "pod" }

// Kind implements rest.KindProvider.
func (*podMetrics) Kind() string { return "PodMetrics" }

// Get implements rest.Getter.
func (m *podMetrics) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	pod, err := m.source.client.Pods(genericapirequest.NamespaceValue(ctx)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	all := m.source.of(ctx, []corev1.Pod{*pod})
	if len(all) == 0 {
		return nil, apierrors.NewNotFound(metrics.Resource("podmetrics"), name) // as metrics-server says it
	}
	return &all[0], nil
}

// List implements rest.Lister.
func (m *podMetrics) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	pods, err := m.source.client.Pods(genericapirequest.NamespaceValue(ctx)).List(ctx, selected(options))
	if err != nil {
		return nil, err
	}
	return &metrics.PodMetricsList{Items: m.source.of(ctx, pods.Items)}, nil
}

// nodeMetrics serves what Nodes use, which is what their Pods do.
type nodeMetrics struct {
	rest.TableConvertor
	source usageSource
}

// New implements rest.Storage.
func (*nodeMetrics) New() runtime.Object { return &metrics.NodeMetrics{} }

// NewList implements rest.Lister.
func (*nodeMetrics) NewList() runtime.Object { return &metrics.NodeMetricsList{} }

// Destroy implements rest.Storage.
func (*nodeMetrics) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*nodeMetrics) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*nodeMetrics) GetSingularName() string { return "node" }

// Kind implements rest.KindProvider.
func (*nodeMetrics) Kind() string { return "NodeMetrics" }

// Get implements rest.Getter.
func (m *nodeMetrics) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	node, err := m.source.client.Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	all, err := m.of(ctx, []corev1.Node{*node}, fields.OneTermEqualSelector("spec.nodeName", name).String())
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// List implements rest.Lister.
func (m *nodeMetrics) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	nodes, err := m.source.client.Nodes().List(ctx, selected(options))
	if err != nil {
		return nil, err
	}
	all, err := m.of(ctx, nodes.Items, "")
	if err != nil {
		return nil, err
	}
	return &metrics.NodeMetricsList{Items: all}, nil
}

// of returns what the Pods that a field selector selects use on each of some nodes.
func (m *nodeMetrics) of(ctx context.Context, nodes []corev1.Node, podSelector string) ([]metrics.NodeMetrics, error) {
	pods, err := m.source.client.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: podSelector})
	if err != nil {
		return nil, err
	}
	nodeOf := map[types.NamespacedName]string{}
	for _, pod := range pods.Items {
		nodeOf[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod.Spec.NodeName
	}
	cpu, memory := map[string]*resource.Quantity{}, map[string]*resource.Quantity{}
	for _, node := range nodes {
		cpu[node.Name], memory[node.Name] = resource.NewQuantity(0, resource.DecimalSI), resource.NewQuantity(0, resource.BinarySI)
	}
	for _, pod := range m.source.of(ctx, pods.Items) {
		node := nodeOf[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
		if cpu[node] == nil {
			continue
		}
		for _, c := range pod.Containers {
			cpu[node].Add(c.Usage[corev1.ResourceCPU])
			memory[node].Add(c.Usage[corev1.ResourceMemory])
		}
	}
	all := []metrics.NodeMetrics{}
	for _, node := range nodes {
		all = append(all, metrics.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, CreationTimestamp: metav1.NewTime(m.source.clock.Now())},
			Timestamp:  metav1.NewTime(m.source.clock.Now()), Window: metav1.Duration{Duration: metricsWindow},
			Usage: corev1.ResourceList{corev1.ResourceCPU: *cpu[node.Name], corev1.ResourceMemory: *memory[node.Name]},
		})
	}
	return all, nil
}

// selected returns options with the selectors of a request.
func selected(options *internalversion.ListOptions) metav1.ListOptions {
	var selectors metav1.ListOptions
	if options == nil {
		return selectors
	}
	if options.LabelSelector != nil {
		selectors.LabelSelector = options.LabelSelector.String()
	}
	if options.FieldSelector != nil {
		selectors.FieldSelector = options.FieldSelector.String()
	}
	return selectors
}
