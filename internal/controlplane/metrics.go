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
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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
	// metricsWindow is the time over which a kubelet measures CPU usage.
	metricsWindow = 10 * time.Second
	// kubeletTimeout is how long a kubelet may take to answer, and kubeletsAtOnce how many are asked concurrently.
	kubeletTimeout = 5 * time.Second
	kubeletsAtOnce = 16
	// processPrefix is the prefix of the ID of a container that is a process.
	processPrefix = "process://"
)

// metricsPriority is the position of metrics.k8s.io in discovery; the value is that of metrics-server's APIService.
var metricsPriority = controlplaneapiserver.APIServicePriority{Group: 100, Version: 100}

var metricsScheme = newMetricsScheme()

func newMetricsScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(metrics.AddToScheme(scheme))
	utilruntime.Must(metricsv1beta1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(metricsv1beta1.SchemeGroupVersion))
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}

// newMetricsGroup returns the API group metrics.k8s.io, which kubectl top reads. Nothing is collected or stored for it:
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
		"pods":  &podMetrics{newUsageStorage(source, "pod", "PodMetrics", true, &metrics.PodMetrics{}, &metrics.PodMetricsList{})},
		"nodes": &nodeMetrics{newUsageStorage(source, "node", "NodeMetrics", false, &metrics.NodeMetrics{}, &metrics.NodeMetricsList{})},
	}
	return &group, nil
}

// podStats is the usage of the containers of Pods, as a kubelet has measured it.
type podStats map[types.UID][]stats.ContainerStats

// usageSource determines the resource usage of Pods.
type usageSource struct {
	client corev1client.CoreV1Interface
	clock  clock.PassiveClock
	log    klog.Logger
}

// ofPods returns the usage of those Pods that run on a node whose kubelet answers, in the order of the Pods. For a
// container that is a process, the usage is what the kubelet has measured; for a simulated one, it is what the
// container requests.
func (s usageSource) ofPods(ctx context.Context, pods []corev1.Pod) []metrics.PodMetrics {
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

// askAll asks the kubelets of the nodes concurrently. The result contains the nodes whose kubelet has answered.
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
				return nil // the result has the other nodes
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

// ask reads the statistics of one kubelet.
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

// usageOf returns the usage of the running containers of a Pod. ok is false if one of them is a process that has not
// been measured yet.
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

// usageStorage has what the storages of both resources have in common.
type usageStorage struct {
	rest.TableConvertor
	usageSource
	kind, singular string
	namespaced     bool
	object, list   runtime.Object
}

func newUsageStorage(source usageSource, singular, kind string, namespaced bool, object, list runtime.Object) usageStorage {
	return usageStorage{rest.NewDefaultTableConvertor(metrics.Resource(singular + "s")), source, kind, singular, namespaced, object, list}
}

func (s *usageStorage) New() runtime.Object     { return s.object.DeepCopyObject() }
func (s *usageStorage) NewList() runtime.Object { return s.list.DeepCopyObject() }
func (s *usageStorage) Destroy()                {}
func (s *usageStorage) NamespaceScoped() bool   { return s.namespaced }
func (s *usageStorage) GetSingularName() string { return s.singular }
func (s *usageStorage) Kind() string            { return s.kind }

// podMetrics serves the PodMetrics resource.
type podMetrics struct{ usageStorage }

func (m *podMetrics) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	pod, err := m.client.Pods(genericapirequest.NamespaceValue(ctx)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	all := m.ofPods(ctx, []corev1.Pod{*pod})
	if len(all) == 0 {
		return nil, apierrors.NewNotFound(metrics.Resource("podmetrics"), name) // the same error as metrics-server's
	}
	return &all[0], nil
}

func (m *podMetrics) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	pods, err := m.client.Pods(genericapirequest.NamespaceValue(ctx)).List(ctx, selected(options))
	if err != nil {
		return nil, err
	}
	return &metrics.PodMetricsList{Items: m.ofPods(ctx, pods.Items)}, nil
}

// nodeMetrics serves the NodeMetrics resource: the usage of a Node is the sum of that of its Pods.
type nodeMetrics struct{ usageStorage }

func (m *nodeMetrics) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	node, err := m.client.Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	all, err := m.ofNodes(ctx, []corev1.Node{*node}, fields.OneTermEqualSelector("spec.nodeName", name).String())
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, apierrors.NewNotFound(metrics.Resource("nodemetrics"), name)
	}
	return &all[0], nil
}

func (m *nodeMetrics) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	nodes, err := m.client.Nodes().List(ctx, selected(options))
	if err != nil {
		return nil, err
	}
	all, err := m.ofNodes(ctx, nodes.Items, "")
	if err != nil {
		return nil, err
	}
	return &metrics.NodeMetricsList{Items: all}, nil
}

// ofNodes returns the usage of the nodes by the Pods that match the field selector.
func (m *nodeMetrics) ofNodes(ctx context.Context, nodes []corev1.Node, podSelector string) ([]metrics.NodeMetrics, error) {
	pods, err := m.client.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: podSelector})
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
	runs, answered := sets.New[string](), sets.New[string]()
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			runs.Insert(pods.Items[i].Spec.NodeName)
		}
	}
	for _, pod := range m.ofPods(ctx, pods.Items) {
		node := nodeOf[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
		if cpu[node] == nil {
			continue
		}
		answered.Insert(node)
		for _, c := range pod.Containers {
			cpu[node].Add(c.Usage[corev1.ResourceCPU])
			memory[node].Add(c.Usage[corev1.ResourceMemory])
		}
	}
	all := []metrics.NodeMetrics{}
	for _, node := range nodes {
		if runs.Has(node.Name) && !answered.Has(node.Name) {
			continue // the usage of its Pods is not known
		}
		all = append(all, metrics.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, CreationTimestamp: metav1.NewTime(m.clock.Now())},
			Timestamp:  metav1.NewTime(m.clock.Now()), Window: metav1.Duration{Duration: metricsWindow},
			Usage: corev1.ResourceList{corev1.ResourceCPU: *cpu[node.Name], corev1.ResourceMemory: *memory[node.Name]},
		})
	}
	return all, nil
}

// selected returns list options with the selectors of a request.
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
